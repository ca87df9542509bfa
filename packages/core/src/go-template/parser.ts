/** Parses Go's text/template language into a tree. Errors have Go's texts: `template: name:1: unexpected "}" in operand`. */
import { appendAll } from '@capstan/kube'
import { quote } from './format.ts'
import type { Token, TokenKind } from './lexer.ts'
import { tokens } from './lexer.ts'
import type { Command, Operand, Pipe, Statement } from './node.ts'
import type { Value } from './value.ts'
import { toInt } from './value.ts'

/** Templates of one source text: the template itself and those of its `define` and `block` actions, by name. */
export type Definitions = ReadonlyMap<string, readonly Statement[]>

/** @throws Error when the text is not a template, or calls a function for which `isFunction` returns false */
export function parse(name: string, source: string, isFunction: (name: string) => boolean): Definitions {
  const all = tokens(source)
  const definitions = new Map<string, readonly Statement[]>()
  let index = 0
  /** Variables in scope, innermost last. */
  let variables = ['$']
  let rangeDepth = 0
  let nesting = 0

  const token = (): Token => all[Math.min(index, all.length - 1)]!
  const next = (): Token => {
    const current = token()
    index++
    return current
  }
  const peekAfterSpace = (): Token => {
    while (token().kind === 'space') index++
    return token()
  }
  const nextAfterSpace = (): Token => {
    peekAfterSpace()
    return next()
  }

  const fail = (message: string, pos = token().pos): never => {
    const line = source.slice(0, pos).split('\n').length
    throw new Error(`template: ${name}:${line}: ${message}`)
  }
  const unexpected = (found: Token, context: string): never => {
    if (found.kind === 'error') return fail(found.text, found.pos)
    return fail(`unexpected ${tokenText(found)} in ${context}`, found.pos)
  }
  const expect = (context: string, ...kinds: TokenKind[]): Token => {
    const found = nextAfterSpace()
    return kinds.includes(found.kind) ? found : unexpected(found, context)
  }

  // Statements

  /** Statements up to `{{end}}` or `{{else}}`, or to the end of the text at the top. */
  function statements(top: boolean): { body: Statement[]; closedBy: 'end' | 'else' | 'text end' } {
    const body: Statement[] = []
    for (;;) {
      const found = next()
      if (found.kind === 'text') {
        body.push({ type: 'text', pos: found.pos, text: found.text })
        continue
      }
      if (found.kind === 'end') {
        if (!top) fail('unexpected EOF', found.pos)
        return { body, closedBy: 'text end' }
      }
      if (found.kind !== 'open') return unexpected(found, 'input')
      const first = peekAfterSpace()
      if (first.kind !== 'keyword') {
        body.push({ type: 'action', pos: first.pos, pipe: pipeline('command', 'close') })
        continue
      }
      if (first.text === 'define' && top) {
        index++
        define()
        continue
      }
      if (first.text === 'end' || first.text === 'else') {
        index++
        if (first.text === 'end') expect('end', 'close')
        if (top) fail(`unexpected {{${first.text}}}`, first.pos)
        return { body, closedBy: first.text }
      }
      index++
      body.push(keyword(first))
    }
  }

  function keyword(word: Token): Statement {
    switch (word.text) {
      case 'if':
      case 'with':
      case 'range':
        return branch(word.text, word.pos)
      case 'break':
      case 'continue': {
        const found = nextAfterSpace()
        if (found.kind !== 'close') unexpected(found, `{{${word.text}}}`)
        if (rangeDepth === 0) fail(`{{${word.text}}} outside {{range}}`, word.pos)
        return { type: word.text, pos: word.pos }
      }
      case 'template': {
        const called = expect('template clause', 'string', 'rawString')
        const templateName = stringValue(called)
        const pipe = peekAfterSpace().kind === 'close' ? undefined : pipeline('template clause', 'close')
        if (pipe === undefined) index++
        return { type: 'template', pos: called.pos, name: templateName, pipe }
      }
      case 'block': {
        const blockName = stringValue(expect('block clause', 'string', 'rawString'))
        const pipe = pipeline('block clause', 'close')
        inOwnScope(() => body(blockName))
        return { type: 'template', pos: word.pos, name: blockName, pipe }
      }
      default:
        return unexpected(word, 'command')
    }
  }

  function define(): void {
    const templateName = stringValue(expect('define clause', 'string', 'rawString'))
    expect('define clause', 'close')
    inOwnScope(() => body(templateName))
  }

  function body(templateName: string): void {
    const { body: content, closedBy } = statements(false)
    if (closedBy === 'else') fail('unexpected {{else}} in define clause')
    add(templateName, content)
  }

  /** A definition replaces an earlier one unless it contains only space. */
  function add(templateName: string, content: readonly Statement[]): void {
    const earlier = definitions.get(templateName)
    if (earlier && !isBlank(earlier) && !isBlank(content))
      fail(`template: multiple definition of template ${quote(templateName)}`)
    if (!earlier || isBlank(earlier)) definitions.set(templateName, content)
  }

  function inOwnScope(run: () => void): void {
    const outer = { variables, rangeDepth }
    variables = ['$']
    rangeDepth = 0
    run()
    ;({ variables, rangeDepth } = outer)
  }

  function branch(type: 'if' | 'with' | 'range', pos: number): Statement {
    enter()
    const scope = variables.length
    const pipe = pipeline(type, 'close')
    if (type === 'range') rangeDepth++
    const { body: content, closedBy } = statements(false)
    if (type === 'range') rangeDepth--
    let otherwise: Statement[] = []
    if (closedBy === 'else') {
      const chained = peekAfterSpace()
      const chains = chained.kind === 'keyword' && chained.text === type && type !== 'range'
      if (chains) {
        index++
        // `{{else if}}` is an `if` in the else branch, which ends together with this one.
        otherwise = [branch(type, chained.pos)]
      } else {
        if (chained.kind === 'keyword' && (chained.text === 'if' || chained.text === 'with')) unexpected(chained, 'input')
        expect('else', 'close')
        const rest = statements(false)
        if (rest.closedBy === 'else') fail('expected end; found {{else}}')
        otherwise = rest.body
      }
    }
    variables.length = scope
    nesting--
    return { type, pos, pipe, body: content, otherwise }
  }

  function enter(): void {
    if (++nesting > DeepestNesting) fail('max expression depth exceeded')
  }

  // Pipelines

  function pipeline(context: string, end: 'close' | 'rightParen'): Pipe {
    const { pos } = peekAfterSpace()
    const { declared, assigns } = declarations(context)
    const commands: Command[] = []
    for (;;) {
      const found = peekAfterSpace()
      if (found.kind === end) {
        index++
        break
      }
      if (!StartsOperand.has(found.kind)) return unexpected(next(), context)
      commands.push(command())
    }
    if (commands.length === 0) fail(`missing value for ${context}`, all[index - 1]!.pos)
    for (const [stage, { operands }] of commands.entries()) {
      const [first] = operands
      if (stage > 0 && (first.type === 'constant' || first.type === 'dot' || first.type === 'nil')) {
        fail(`non executable command in pipeline stage ${stage + 1}`, first.pos)
      }
    }
    return { type: 'pipe', pos, variables: declared, assigns, commands }
  }

  /** Parses `$x :=`, `$x =`, and for range `$i, $x :=`, at the start of a pipeline. */
  function declarations(context: string): { declared: string[]; assigns: boolean } {
    const start = index
    const declared: string[] = []
    while (token().kind === 'variable') {
      declared.push(next().text)
      const found = peekAfterSpace()
      if (found.kind === 'declare' || found.kind === 'assign') {
        index++
        if (found.kind === 'declare') appendAll(variables, declared)
        return { declared, assigns: found.kind === 'assign' }
      }
      if (found.kind !== 'comma') break
      index++
      if (context !== 'range' || declared.length === 2) fail(`too many declarations in ${context}`, found.pos)
      if (peekAfterSpace().kind !== 'variable') return fail('range can only initialize variables', token().pos)
    }
    index = start
    return { declared: [], assigns: false }
  }

  function command(): Command {
    const { pos } = peekAfterSpace()
    const operands: Operand[] = []
    for (;;) {
      peekAfterSpace()
      const part = operand()
      if (part) operands.push(part)
      const behind = next()
      if (behind.kind === 'space') continue
      if (behind.kind === 'close' || behind.kind === 'rightParen') index--
      else if (behind.kind !== 'pipe') return unexpected(behind, 'operand')
      break
    }
    const [first, ...rest] = operands
    if (!first) return fail('empty command', pos)
    return { type: 'command', pos, operands: [first, ...rest] }
  }

  /** Parses a term with its field chain; returns `undefined` when there is none. */
  function operand(): Operand | undefined {
    const of = term()
    if (!of) return undefined
    if (token().kind !== 'field') return of
    const { pos } = token()
    const names: string[] = []
    while (token().kind === 'field') names.push(next().text.slice(1))
    switch (of.type) {
      case 'field':
      case 'variable':
        return { type: of.type, pos, names: [...of.names, ...names] }
      case 'constant':
      case 'dot':
      case 'nil':
        return fail(`unexpected . after term ${quote(of.type === 'constant' ? of.source : of.type === 'dot' ? '.' : 'nil')}`)
      case 'function':
      case 'pipe':
      case 'chain':
        return { type: 'chain', pos, of, names }
    }
  }

  function term(): Operand | undefined {
    const found = peekAfterSpace()
    const { kind, pos, text } = found
    if (!StartsOperand.has(kind)) return undefined
    index++
    if (kind === 'identifier') {
      if (!isFunction(text)) fail(`function ${quote(text)} not defined`, pos)
      return { type: 'function', pos, name: text }
    }
    if (kind === 'dot' || kind === 'nil') return { type: kind, pos }
    if (kind === 'field') return { type: 'field', pos, names: [text.slice(1)] }
    if (kind === 'variable') {
      checkDefined(text, pos)
      return { type: 'variable', pos, names: [text] }
    }
    if (kind === 'leftParen') {
      enter()
      const pipe = pipeline('parenthesized pipeline', 'rightParen')
      nesting--
      return pipe
    }
    return { type: 'constant', pos, source: text, value: constant(found) }
  }

  function constant(found: Token): Value {
    const { kind, pos, text } = found
    if (kind === 'bool') return text === 'true'
    if (kind === 'number') return numberValue(text) ?? fail(badNumber(text), pos)
    if (kind === 'char') return charValue(text) ?? fail(`malformed character constant: ${text}`, pos)
    return stringValue(found)
  }

  function checkDefined(variable: string, pos: number): void {
    if (!variables.includes(variable)) fail(`undefined variable ${quote(variable)}`, pos)
  }

  const stringValue = (found: Token): string => {
    if (found.kind === 'rawString') return found.text.slice(1, -1)
    return unquote(found.text) ?? fail('invalid syntax', found.pos)
  }

  const { body: main } = statements(true)
  add(name, main)
  return definitions
}

/** Deepest nesting, chosen to stay far below a stack overflow. */
const DeepestNesting = 200

const StartsOperand: ReadonlySet<TokenKind> = new Set<TokenKind>([
  'bool',
  'char',
  'dot',
  'field',
  'identifier',
  'nil',
  'number',
  'string',
  'rawString',
  'variable',
  'leftParen',
])

const isBlank = (content: readonly Statement[]): boolean =>
  content.every((statement) => statement.type === 'text' && statement.text.trim() === '')

function tokenText({ kind, text }: Token): string {
  if (kind === 'end') return 'EOF'
  if (kind === 'keyword') return `<${text}>`
  return text.length > 10 ? `${quote(text.slice(0, 10))}...` : quote(text)
}

/** Parses an int (bigint) or a float64 (number); returns `undefined` when the text is neither. */
function numberValue(source: string): Value {
  const text = source.replaceAll('_', '')
  const negative = text.startsWith('-')
  const digits = text.replace(/^[+-]/, '')
  if (/^(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|[0-9]+)$/.test(digits)) {
    const octal = /^0[0-7]+$/.test(digits)
    if (/^0[0-9]+$/.test(digits) && !octal) return undefined
    const value = BigInt(octal ? `0o${digits.slice(1)}` : digits)
    if (value > (negative ? 2n ** 63n : 2n ** 63n - 1n)) return undefined
    return toInt(negative ? -value : value)
  }
  const isFloat = /^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/.test(digits)
  return isFloat && Number.isFinite(Number(digits)) ? Number(text) : undefined
}

const badNumber = (source: string): string =>
  `${/^[+-]?[0-9_]+$/.test(source) ? 'integer overflow' : 'illegal number syntax'}: ${quote(source)}`

function charValue(source: string): Value {
  const char = unquote(`"${source.slice(1, -1).replaceAll('"', '\\"').replaceAll("\\'", "'")}"`)
  return char !== undefined && Array.from(char).length === 1 ? BigInt(char.codePointAt(0)!) : undefined
}

/** Parses a Go string literal in double quotes; returns `undefined` for an invalid escape. */
function unquote(source: string): string | undefined {
  const bytes: number[] = []
  const pattern = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|([abfnrtv\\"]))|[^\\]/gsu
  const inner = source.slice(1, -1)
  let end = 0
  for (const match of inner.matchAll(pattern)) {
    if (match.index !== end) return undefined
    end += match[0].length
    const [whole, hex, short, long, octal, simple] = match
    if (hex !== undefined) bytes.push(Number.parseInt(hex, 16))
    else if (octal !== undefined) bytes.push(Number.parseInt(octal, 8) & 0xff)
    else if (simple !== undefined) appendAll(bytes, Buffer.from(SimpleEscapes[simple]!))
    else {
      const code = Number.parseInt(short ?? long ?? '', 16)
      if (code > 0x10ffff) return undefined
      appendAll(bytes, Buffer.from(Number.isNaN(code) ? whole : String.fromCodePoint(code)))
    }
  }
  return end === inner.length ? Buffer.from(bytes).toString() : undefined
}

const SimpleEscapes: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '"': '"',
}
