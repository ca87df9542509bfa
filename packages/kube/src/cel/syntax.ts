/**
 * The syntax tree of an expression. Macros (except `sortBy`) have their own nodes and are not expanded, so that errors refer to the macro
 * itself.
 */

/**
 * Position of a node in the source, in UTF-16 code units: the bracket of a call, the operator of an operation or a selection, and the start
 * of other nodes. As upstream, except for a negative number: here the position is that of its first digit, upstream that of its minus sign.
 */
interface At {
  readonly at: number
}

export type Node = At &
  (
    | {
        readonly kind: 'literal'
        readonly value: null | boolean | bigint | number | string | Uint8Array | { readonly uint: bigint }
      }
    | { readonly kind: 'name'; readonly name: string }
    | { readonly kind: 'select'; readonly of: Node; readonly field: string; readonly optional: boolean }
    | { readonly kind: 'has'; readonly of: Node; readonly field: string; readonly optional: boolean }
    | { readonly kind: 'call'; readonly name: string; readonly target?: Node; readonly args: readonly Node[] }
    | { readonly kind: 'list'; readonly items: readonly { readonly value: Node; readonly optional: boolean }[] }
    | {
        readonly kind: 'map'
        readonly entries: readonly { readonly key: Node; readonly value: Node; readonly optional: boolean }[]
      }
    /** `&&` (`and`) or `||` (`or`), with two or more operands, so that the tree of a long condition is not deep. */
    | { readonly kind: 'and' | 'or'; readonly operands: readonly Node[] }
    /** `condition ? yes : no`. */
    | { readonly kind: 'choice'; readonly condition: Node; readonly yes: Node; readonly no: Node }
    | {
        readonly kind: 'macro'
        readonly macro: Macro
        readonly range: Node
        /** One variable (items of a list, keys of a map) or two (index and item, key and value). */
        readonly variables: readonly string[]
        readonly filter?: Node
        readonly body: Node
      }
    /** `optMap`, or `optFlatMap` if `flat` is true. */
    | { readonly kind: 'optMap'; readonly of: Node; readonly variable: string; readonly body: Node; readonly flat: boolean }
    /** `cel.bind`: binds a value to a name. */
    | { readonly kind: 'bind'; readonly variable: string; readonly value: Node; readonly body: Node }
  )

export type Macro = 'all' | 'exists' | 'existsOne' | 'map' | 'filter' | 'transformMap' | 'transformMapEntry'

/** An error in the text of an expression, with its position. */
export interface Issue {
  readonly at: number
  readonly message: string
}

/**
 * Error of an expression that does not compile. The message has upstream's form: each issue with its source line, and a mark below its
 * position.
 */
export class CompileError extends Error {
  override readonly name = 'CompileError'
  constructor(source: string, issues: readonly Issue[]) {
    super(
      [...issues]
        .sort((a, b) => a.at - b.at)
        .map((issue) => formatIssue(source, issue))
        .join('\n'),
    )
  }
}

function formatIssue(source: string, { at, message }: Issue): string {
  // Upstream prints no source line for an empty expression.
  if (source === '') return `ERROR: <input>:1:0: ${message}`
  const before = source.slice(0, at).split('\n')
  const column = Array.from(before.at(-1)!).length
  const line = source.split('\n')[before.length - 1] ?? ''
  return `ERROR: <input>:${before.length}:${column + 1}: ${message}\n | ${line.replaceAll('\t', ' ')}\n | ${'.'.repeat(column)}^`
}
