/** Parses Go's text/template language into a tree. Errors have Go's texts: `template: name:1: unexpected "}" in operand`. */
import { appendAll } from '@capstan/kube'
import { quotedGo } from '@capstan/kube'
import type { Token, TokenKind } from './lexer.ts'
import { tokens } from './lexer.ts'
import type { Command, Operand, Pipe, Statement } from './node.ts'
import { nodeText } from './node.ts'
import { parseFloat64, parseInteger } from './number-literals.ts'
import type { Value } from './value.ts'
import { toInt } from './value.ts'

/** Templates of one source text: the template itself and those of its `define` and `block` actions, by name. */
export type Definitions = ReadonlyMap<string, readonly Statement[]>

/**
 * Parses a template. `name` is the name of the template in the result and in errors.
 * @throws Error when `source` is not a template, or calls a function for which `isFunction` returns false
 */
export const parse = (name: string, source: string, isFunction: (name: string) => boolean): Definitions =>
  new Parser(name, source, isFunction).parse()

class Parser {
  readonly #name: string
  readonly #source: string
  readonly #isFunction: (name: string) => boolean
  readonly #tokens: readonly Token[]
  readonly #definitions = new Map<string, readonly Statement[]>()
  /** Position in `#tokens`. */
  #index = 0
  /** Variables in scope, innermost last. */
  #variables = ['$']
  #rangeDepth = 0
  #nesting = 0

  constructor(name: string, source: string, isFunction: (name: string) => boolean) {
    this.#name = name
    this.#source = source
    this.#isFunction = isFunction
    this.#tokens = tokens(source)
  }

  parse(): Definitions {
    const { body } = this.#statements(true)
    this.#add(this.#name, body)
    return this.#definitions
  }

  // Tokens

  #token(): Token {
    return this.#tokens[Math.min(this.#index, this.#tokens.length - 1)]!
  }

  #next(): Token {
    const current = this.#token()
    this.#index++
    return current
  }

  #peekAfterSpace(): Token {
    while (this.#token().kind === 'space') this.#index++
    return this.#token()
  }

  #nextAfterSpace(): Token {
    this.#peekAfterSpace()
    return this.#next()
  }

  #expect(context: string, ...kinds: TokenKind[]): Token {
    const token = this.#nextAfterSpace()
    return kinds.includes(token.kind) ? token : this.#unexpected(token, context)
  }

  #unexpected(token: Token, context: string): never {
    if (token.kind === 'error') return this.#fail(token.text, token.pos)
    return this.#fail(`unexpected ${tokenText(token)} in ${context}`, token.pos)
  }

  #fail(message: string, pos = this.#token().pos): never {
    const line = this.#source.slice(0, pos).split('\n').length
    throw new Error(`template: ${this.#name}:${line}: ${message}`)
  }

  // Statements

  /** Parses statements up to `{{end}}` or `{{else}}`; at the top level, up to the end of the text. */
  #statements(isTop: boolean): { body: Statement[]; closedBy: 'end' | 'else' | 'text end' } {
    const body: Statement[] = []
    for (;;) {
      const token = this.#next()
      if (token.kind === 'text') {
        body.push({ type: 'text', pos: token.pos, text: token.text })
        continue
      }
      if (token.kind === 'end') {
        if (!isTop) this.#fail('unexpected EOF', token.pos)
        return { body, closedBy: 'text end' }
      }
      if (token.kind !== 'open') return this.#unexpected(token, 'input')
      const first = this.#peekAfterSpace()
      if (first.kind !== 'keyword') {
        body.push({ type: 'action', pos: first.pos, pipe: this.#pipeline('command', 'close') })
        continue
      }
      if (first.text === 'define' && isTop) {
        this.#index++
        this.#define()
        continue
      }
      if (first.text === 'end' || first.text === 'else') {
        this.#index++
        if (first.text === 'end') this.#expect('end', 'close')
        else this.#checkElse()
        if (isTop) this.#fail(`unexpected {{${first.text}}}`, first.pos)
        return { body, closedBy: first.text }
      }
      this.#index++
      body.push(this.#keyword(first))
    }
  }

  /** Checks that `else` ends its action or begins `{{else if` or `{{else with`. Upstream: elseControl. */
  #checkElse(): void {
    const next = this.#peekAfterSpace()
    const isChained = next.kind === 'keyword' && (next.text === 'if' || next.text === 'with')
    if (next.kind !== 'close' && !isChained) this.#unexpected(next, 'else')
  }

  #keyword(word: Token): Statement {
    switch (word.text) {
      case 'if':
      case 'with':
      case 'range':
        return this.#branch(word.text, word.pos)
      case 'break':
      case 'continue': {
        const token = this.#nextAfterSpace()
        if (token.kind !== 'close') this.#unexpected(token, `{{${word.text}}}`)
        if (this.#rangeDepth === 0) this.#fail(`{{${word.text}}} outside {{range}}`, word.pos)
        return { type: word.text, pos: word.pos }
      }
      case 'template': {
        const called = this.#expect('template clause', 'string', 'rawString')
        const templateName = this.#stringValue(called)
        const pipe = this.#peekAfterSpace().kind === 'close' ? undefined : this.#pipeline('template clause', 'close')
        if (pipe === undefined) this.#index++
        return { type: 'template', pos: called.pos, name: templateName, pipe }
      }
      case 'block': {
        const blockName = this.#stringValue(this.#expect('block clause', 'string', 'rawString'))
        const pipe = this.#pipeline('block clause', 'close')
        this.#enter()
        this.#inOwnScope(() => this.#body(blockName, 'block clause'))
        this.#nesting--
        return { type: 'template', pos: word.pos, name: blockName, pipe }
      }
      default:
        return this.#unexpected(word, 'command')
    }
  }

  #define(): void {
    const templateName = this.#stringValue(this.#expect('define clause', 'string', 'rawString'))
    this.#expect('define clause', 'close')
    this.#inOwnScope(() => this.#body(templateName, 'define clause'))
  }

  #body(templateName: string, context: string): void {
    const { body: content, closedBy } = this.#statements(false)
    if (closedBy === 'else') this.#fail(`unexpected {{else}} in ${context}`)
    this.#add(templateName, content)
  }

  /** Adds a definition. Of two definitions of a template, at least one must be only white space; the other one applies. */
  #add(templateName: string, content: readonly Statement[]): void {
    const earlier = this.#definitions.get(templateName)
    if (earlier && !isBlank(earlier) && !isBlank(content))
      this.#fail(`template: multiple definition of template ${quotedGo(templateName)}`)
    if (!earlier || isBlank(earlier)) this.#definitions.set(templateName, content)
  }

  #inOwnScope(run: () => void): void {
    const outer = { variables: this.#variables, rangeDepth: this.#rangeDepth }
    this.#variables = ['$']
    this.#rangeDepth = 0
    run()
    this.#variables = outer.variables
    this.#rangeDepth = outer.rangeDepth
  }

  #branch(type: 'if' | 'with' | 'range', pos: number): Statement {
    this.#enter()
    const scope = this.#variables.length
    const pipe = this.#pipeline(type, 'close')
    if (type === 'range') this.#rangeDepth++
    const { body: content, closedBy } = this.#statements(false)
    if (type === 'range') this.#rangeDepth--
    let otherwise: Statement[] = []
    if (closedBy === 'else') {
      const chained = this.#peekAfterSpace()
      const isChained = chained.kind === 'keyword' && chained.text === type && type !== 'range'
      if (isChained) {
        this.#index++
        // `{{else if}}` starts an `if` in the else branch; a single `{{end}}` closes both.
        otherwise = [this.#branch(type, chained.pos)]
      } else {
        if (chained.kind === 'keyword' && (chained.text === 'if' || chained.text === 'with')) this.#unexpected(chained, 'input')
        this.#index++
        const alternative = this.#statements(false)
        if (alternative.closedBy === 'else') this.#fail('expected end; found {{else}}')
        otherwise = alternative.body
      }
    }
    this.#variables.length = scope
    this.#nesting--
    return { type, pos, pipe, body: content, otherwise }
  }

  #enter(): void {
    if (++this.#nesting > DeepestNesting) this.#fail('max expression depth exceeded')
  }

  // Pipelines

  #pipeline(context: string, end: 'close' | 'rightParen'): Pipe {
    const { pos } = this.#peekAfterSpace()
    const { declared, assigns } = this.#declarations(context)
    const commands: Command[] = []
    for (;;) {
      const token = this.#peekAfterSpace()
      if (token.kind === end) {
        this.#index++
        break
      }
      if (!StartsOperand.has(token.kind)) return this.#unexpected(this.#next(), context)
      commands.push(this.#command())
    }
    if (commands.length === 0) this.#fail(`missing value for ${context}`, this.#tokens[this.#index - 1]!.pos)
    for (const [stage, { operands }] of commands.entries()) {
      const [first] = operands
      if (stage > 0 && (first.type === 'constant' || first.type === 'dot' || first.type === 'nil')) {
        this.#fail(`non executable command in pipeline stage ${stage + 1}`, first.pos)
      }
    }
    return { type: 'pipe', pos, variables: declared, assigns, commands }
  }

  /** Parses `$x :=` or `$x =` at the start of a pipeline; for range, also `$i, $x :=` or `$i, $x =`. */
  #declarations(context: string): { declared: string[]; assigns: boolean } {
    const start = this.#index
    const declared: string[] = []
    while (this.#token().kind === 'variable') {
      declared.push(this.#next().text)
      const token = this.#peekAfterSpace()
      if (token.kind === 'declare' || token.kind === 'assign') {
        this.#index++
        if (token.kind === 'declare') appendAll(this.#variables, declared)
        return { declared, assigns: token.kind === 'assign' }
      }
      if (token.kind !== 'comma') break
      this.#index++
      if (context !== 'range' || declared.length === 2) this.#fail(`too many declarations in ${context}`, token.pos)
      if (this.#peekAfterSpace().kind !== 'variable') return this.#fail('range can only initialize variables', this.#token().pos)
    }
    this.#index = start
    return { declared: [], assigns: false }
  }

  #command(): Command {
    const { pos } = this.#peekAfterSpace()
    const operands: Operand[] = []
    for (;;) {
      this.#peekAfterSpace()
      const operand = this.#operand()
      if (operand) operands.push(operand)
      const next = this.#next()
      if (next.kind === 'space') continue
      if (next.kind === 'close' || next.kind === 'rightParen') this.#index--
      else if (next.kind !== 'pipe') return this.#unexpected(next, 'operand')
      break
    }
    const [first, ...others] = operands
    if (!first) return this.#fail('empty command', pos)
    return { type: 'command', pos, operands: [first, ...others] }
  }

  /** Parses a term with its field chain; returns `undefined` when there is no term. */
  #operand(): Operand | undefined {
    const term = this.#term()
    if (!term) return undefined
    if (this.#token().kind !== 'field') return term
    const { pos } = this.#token()
    const names: string[] = []
    while (this.#token().kind === 'field') names.push(this.#next().text.slice(1))
    switch (term.type) {
      case 'field':
      case 'variable':
        return { type: term.type, pos, names: [...term.names, ...names] }
      case 'constant':
      case 'dot':
      case 'nil':
        return this.#fail(`unexpected . after term ${quotedGo(nodeText(term))}`)
      case 'function':
      case 'pipe':
      case 'chain':
        return { type: 'chain', pos, of: term, names }
    }
  }

  #term(): Operand | undefined {
    const token = this.#peekAfterSpace()
    const { kind, pos, text } = token
    if (!StartsOperand.has(kind)) return undefined
    this.#index++
    if (kind === 'identifier') {
      if (!this.#isFunction(text)) this.#fail(`function ${quotedGo(text)} not defined`, pos)
      return { type: 'function', pos, name: text }
    }
    if (kind === 'dot' || kind === 'nil') return { type: kind, pos }
    if (kind === 'field') return { type: 'field', pos, names: [text.slice(1)] }
    if (kind === 'variable') {
      this.#checkDefined(text, pos)
      return { type: 'variable', pos, names: [text] }
    }
    if (kind === 'leftParen') {
      this.#enter()
      const pipe = this.#pipeline('parenthesized pipeline', 'rightParen')
      this.#nesting--
      return pipe
    }
    return { type: 'constant', pos, source: text, value: this.#constant(token) }
  }

  #constant(token: Token): Value {
    const { kind, pos, text } = token
    if (kind === 'bool') return text === 'true'
    if (kind === 'number') return numberValue(text) ?? this.#fail(badNumber(text), pos)
    if (kind === 'char') return charValue(text) ?? this.#fail(`malformed character constant: ${text}`, pos)
    return this.#stringValue(token)
  }

  #checkDefined(variable: string, pos: number): void {
    if (!this.#variables.includes(variable)) this.#fail(`undefined variable ${quotedGo(variable)}`, pos)
  }

  #stringValue(token: Token): string {
    if (token.kind === 'rawString') return token.text.slice(1, -1)
    return unquote(token.text) ?? this.#fail('invalid syntax', token.pos)
  }
}

/** Deepest nesting of branches, blocks and parentheses, chosen to stay far below a stack overflow. */
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
  return text.length > 10 ? `${quotedGo(text.slice(0, 10))}...` : quotedGo(text)
}

/** Parses an int (bigint) or a float64 (number); returns `undefined` for any other text. */
function numberValue(source: string): Value {
  const integer = parseInteger(source)
  if (integer !== undefined) return integer === toInt(integer) ? integer : undefined
  return FloatMark.test(source) ? parseFloat64(source) : undefined
}

/** What distinguishes a float64 from an int. */
const FloatMark = /[.eEpP]/

/** As in Go, a text that is a float64 apart from `FloatMark` is called an integer overflow, for example 08. */
function badNumber(source: string): string {
  const isTooLarge = parseInteger(source) !== undefined || (!FloatMark.test(source) && parseFloat64(source) !== undefined)
  return `${isTooLarge ? 'integer overflow' : 'illegal number syntax'}: ${quotedGo(source)}`
}

function charValue(source: string): Value {
  const char = unquote(`"${source.slice(1, -1).replaceAll('"', '\\"').replaceAll("\\'", "'")}"`)
  return char !== undefined && Array.from(char).length === 1 ? BigInt(char.codePointAt(0)!) : undefined
}

/** Parses a Go string literal in double quotes; returns `undefined` for an invalid escape. Unlike in Go, bytes that are not UTF-8 become U+FFFD. */
function unquote(source: string): string | undefined {
  const bytes: number[] = []
  const pattern = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([abfnrtv\\"]))|[^\\]/gsu
  const inner = source.slice(1, -1)
  let end = 0
  for (const match of inner.matchAll(pattern)) {
    if (match.index !== end) return undefined
    end += match[0].length
    const [whole, hex, short, long, octal, simple] = match
    if (hex !== undefined) bytes.push(Number.parseInt(hex, 16))
    else if (octal !== undefined) bytes.push(Number.parseInt(octal, 8))
    else if (simple !== undefined) appendAll(bytes, Buffer.from(SimpleEscapes[simple]!))
    else {
      const code = Number.parseInt(short ?? long ?? '', 16)
      if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return undefined
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
