/** The syntax tree of a template, and its formatting for error messages. Upstream: the package text/template/parse of Go. */
import { quotedGo } from '@capstan/kube'
import type { Value } from './value.ts'

interface Positioned {
  /** Offset in the source in UTF-16 code units, for error messages. */
  readonly pos: number
}

export type Operand =
  | (Positioned & { readonly type: 'dot' | 'nil' })
  | (Positioned & { readonly type: 'constant'; readonly source: string; readonly value: Value })
  | (Positioned & { readonly type: 'field' | 'variable'; readonly names: readonly string[] })
  | (Positioned & { readonly type: 'chain'; readonly of: Operand; readonly names: readonly string[] })
  | (Positioned & { readonly type: 'function'; readonly name: string })
  | Pipe

export interface Command extends Positioned {
  readonly type: 'command'
  readonly operands: readonly [Operand, ...Operand[]]
}

export interface Pipe extends Positioned {
  readonly type: 'pipe'
  readonly variables: readonly string[]
  /** Whether the variables are assigned with `=` rather than declared with `:=`. */
  readonly assigns: boolean
  readonly commands: readonly Command[]
}

export interface Branch extends Positioned {
  readonly type: 'if' | 'with' | 'range'
  readonly pipe: Pipe
  readonly body: readonly Statement[]
  readonly otherwise: readonly Statement[]
}

export type Statement =
  | (Positioned & { readonly type: 'text'; readonly text: string })
  | (Positioned & { readonly type: 'action'; readonly pipe: Pipe })
  | (Positioned & { readonly type: 'break' | 'continue' })
  | (Positioned & { readonly type: 'template'; readonly name: string; readonly pipe: Pipe | undefined })
  | Branch

export type Node = Operand | Command | Statement

/** Formats a node in template syntax, for error messages. */
export function nodeText(node: Node): string {
  switch (node.type) {
    case 'dot':
      return '.'
    case 'nil':
      return 'nil'
    case 'constant':
      return node.source
    case 'field':
      return node.names.map((name) => `.${name}`).join('')
    case 'variable':
      return node.names.join('.')
    case 'chain':
      return `${node.of.type === 'pipe' ? `(${nodeText(node.of)})` : nodeText(node.of)}${node.names.map((name) => `.${name}`).join('')}`
    case 'function':
      return node.name
    case 'command':
      return node.operands.map((operand) => (operand.type === 'pipe' ? `(${nodeText(operand)})` : nodeText(operand))).join(' ')
    case 'pipe': {
      const declared = node.variables.length === 0 ? '' : `${node.variables.join(', ')} ${node.assigns ? '=' : ':='} `
      return declared + node.commands.map(nodeText).join(' | ')
    }
    case 'template':
      return `{{template ${quotedGo(node.name)}${node.pipe ? ` ${nodeText(node.pipe)}` : ''}}}`
    case 'action':
      return `{{${nodeText(node.pipe)}}}`
    case 'text':
      return node.text
    case 'break':
    case 'continue':
      return `{{${node.type}}}`
    case 'if':
    case 'with':
    case 'range': {
      const otherwise = node.otherwise.length > 0 ? `{{else}}${node.otherwise.map(nodeText).join('')}` : ''
      return `{{${node.type} ${nodeText(node.pipe)}}}${node.body.map(nodeText).join('')}${otherwise}{{end}}`
    }
  }
}
