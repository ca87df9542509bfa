/** Parses the text of an expression into a syntax tree. Upstream: cel-go's parser, with the macros that Kubernetes enables. */
import { isReserved } from './identifier.ts'
import { SyntaxProblem, type Token, tokens } from './lex.ts'
import { CompileError, type Macro, type Node } from './syntax.ts'

/** Macros that Kubernetes enables only for some expressions, such as selectors of devices. Default: none. */
export interface Dialect {
  /** `cel.bind(name, value, body)`. */
  readonly bindings?: boolean
}

/** Parses an expression. @throws CompileError */
export function parse(source: string, dialect: Dialect = {}): Node {
  try {
    const size = Array.from(source).length
    if (size > MaxSize) {
      throw new SyntaxProblem(0, `expression code point size exceeds limit: size: ${size}, limit ${MaxSize}`)
    }
    return new Parser(tokens(source), dialect).parse()
  } catch (err) {
    if (err instanceof SyntaxProblem) throw new CompileError(source, [{ at: err.at, message: err.message }])
    throw err
  }
}

const MaxSize = 100_000
const MaxDepth = 250

const Relations = new Set(['<', '<=', '>=', '>', '==', '!=', 'in'])

class Parser {
  readonly #tokens: readonly Token[]
  readonly #dialect: Dialect
  #index = 0
  #depth = 0
  /** Index of the first token of the arguments in the last call that has any. */
  #firstArgument = -1

  constructor(list: readonly Token[], dialect: Dialect) {
    this.#tokens = list
    this.#dialect = dialect
  }

  parse(): Node {
    const node = this.#expression()
    if (this.#next.kind !== 'end') throw this.#unexpected('<EOF>', 'extraneous')
    return node
  }

  get #next(): Token {
    return this.#tokens[this.#index]!
  }

  #nextIs(text: string): boolean {
    return this.#next.kind === 'operator' && this.#next.text === text
  }

  #skip(text: string): boolean {
    if (!this.#nextIs(text)) return false
    this.#index++
    return true
  }

  #expect(text: string): Token {
    const token = this.#next
    if (!this.#skip(text)) throw this.#unexpected(`'${text}'`)
    return token
  }

  #unexpected(expected: string, problem = 'mismatched'): SyntaxProblem {
    const { at, text } = this.#next
    return new SyntaxProblem(at, `Syntax error: ${problem} input '${text}' expecting ${expected}`)
  }

  #checkDepth(depth: number): void {
    if (depth > MaxDepth) throw new SyntaxProblem(this.#next.at, `expression recursion limit exceeded: ${MaxDepth}`)
  }

  #expression(): Node {
    this.#checkDepth(++this.#depth)
    const condition = this.#operands('or', '||', () => this.#operands('and', '&&', () => this.#relation()))
    let node = condition
    const { at } = this.#next
    if (this.#skip('?')) {
      const yes = this.#operands('or', '||', () => this.#operands('and', '&&', () => this.#relation()))
      this.#expect(':')
      node = { kind: 'choice', at, condition, yes, no: this.#expression() }
    }
    this.#depth--
    return node
  }

  #operands(kind: 'and' | 'or', operator: string, operand: () => Node): Node {
    const first = operand()
    if (!this.#nextIs(operator)) return first
    const { at } = this.#next
    const operands = [first]
    while (this.#skip(operator)) operands.push(operand())
    return { kind, at, operands }
  }

  #chain(operators: (text: string) => boolean, operand: () => Node): Node {
    let node = operand()
    for (let links = this.#depth; this.#next.kind === 'operator' && operators(this.#next.text); ) {
      this.#checkDepth(++links)
      const { at, text } = this.#next
      this.#index++
      node = { kind: 'call', at, name: text === 'in' ? '@in' : `_${text}_`, args: [node, operand()] }
    }
    return node
  }

  #relation(): Node {
    return this.#chain(
      (text) => Relations.has(text),
      () =>
        this.#chain(
          (text) => text === '+' || text === '-',
          () =>
            this.#chain(
              (text) => text === '*' || text === '/' || text === '%',
              () => this.#unary(),
            ),
        ),
    )
  }

  #unary(): Node {
    const { at, text } = this.#next
    if (!this.#nextIs('!') && !this.#nextIs('-')) return this.#member()
    let count = 0
    while (this.#skip(text)) count++
    // A minus before a number is part of the literal, because the lowest integer has no positive counterpart.
    const literal = this.#next
    if (text === '-' && literal.kind === 'literal' && (typeof literal.value === 'bigint' || typeof literal.value === 'number')) {
      const member = this.#member(true)
      return count % 2 === 1 ? member : { kind: 'call', at, name: '-_', args: [member] }
    }
    const member = this.#member()
    return count % 2 === 0 ? member : { kind: 'call', at, name: `${text}_`, args: [member] }
  }

  #member(negative = false): Node {
    let node = this.#primary(negative)
    for (let links = this.#depth; ; ) {
      this.#checkDepth(++links)
      const { at } = this.#next
      if (this.#skip('.')) {
        const optional = this.#skip('?')
        const token = this.#next
        // Upstream: Kubernetes escapes names in its own way (`__dash__`), and does not enable CEL's quoted identifiers.
        if (token.kind === 'quoted') throw new SyntaxProblem(token.at, "unsupported syntax: '`'")
        if (token.kind !== 'name') throw this.#unexpected('IDENTIFIER')
        this.#index++
        const open = this.#next.at
        if (!optional && this.#skip('(')) {
          const args = this.#list(')')
          const isBinding = this.#dialect.bindings && token.text === 'bind' && node.kind === 'name' && node.name === 'cel'
          node = isBinding && args.length === 3 ? bindNode(args, open) : memberCall(node, token.text, args, open)
        } else node = { kind: 'select', at, of: node, field: token.text, optional }
      } else if (this.#skip('[')) {
        const name = this.#skip('?') ? '_[?_]' : '_[_]'
        const index = this.#expression()
        this.#expect(']')
        node = { kind: 'call', at, name, args: [node, index] }
      } else return node
    }
  }

  #primary(negative: boolean): Node {
    const token = this.#next
    const { at } = token
    if (token.kind === 'literal') {
      this.#index++
      if (typeof token.value === 'bigint') {
        const value = negative ? -token.value : token.value
        if (BigInt.asIntN(64, value) !== value) throw new SyntaxProblem(at, 'invalid int literal')
        return { kind: 'literal', at, value }
      }
      return { kind: 'literal', at, value: negative && typeof token.value === 'number' ? -token.value : token.value }
    }
    if (token.kind === 'name') return this.#nameOrCall(token.text)
    if (this.#skip('.')) {
      if (this.#next.kind !== 'name') throw this.#unexpected('IDENTIFIER')
      return this.#nameOrCall(this.#next.text)
    }
    if (this.#skip('(')) {
      const node = this.#expression()
      this.#expect(')')
      return node
    }
    if (this.#skip('[')) return this.#listLiteral(at)
    if (this.#skip('{')) return this.#mapLiteral(at)
    throw this.#unexpected(this.#index === this.#firstArgument ? ExpressionStartsOrClose : ExpressionStarts)
  }

  #nameOrCall(name: string): Node {
    const { at } = this.#next
    this.#index++
    if (isReserved(name)) throw new SyntaxProblem(at, `reserved identifier: ${name}`)
    const open = this.#next.at
    if (!this.#skip('(')) return { kind: 'name', at, name }
    const args = this.#list(')')
    if (name !== 'has' || args.length !== 1) return { kind: 'call', at: open, name, args }
    const [field] = args as [Node]
    if (field.kind !== 'select') throw new SyntaxProblem(field.at, 'invalid argument to has() macro')
    return { ...field, kind: 'has', at: open }
  }

  #list(close: string): Node[] {
    const items: Node[] = []
    if (this.#skip(close)) return items
    this.#firstArgument = this.#index
    do items.push(this.#expression())
    while (this.#skip(','))
    this.#expect(close)
    return items
  }

  #listLiteral(at: number): Node {
    const items: { value: Node; optional: boolean }[] = []
    while (!this.#nextIs(']')) {
      const optional = this.#skip('?')
      items.push({ optional, value: this.#expression() })
      if (!this.#skip(',')) break
    }
    this.#expect(']')
    return { kind: 'list', at, items }
  }

  #mapLiteral(at: number): Node {
    const entries: { key: Node; value: Node; optional: boolean }[] = []
    while (!this.#nextIs('}')) {
      const optional = this.#skip('?')
      const key = this.#expression()
      this.#expect(':')
      entries.push({ key, optional, value: this.#expression() })
      if (!this.#skip(',')) break
    }
    this.#expect('}')
    return { kind: 'map', at, entries }
  }
}

const ExpressionStarts =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"

/** Tokens expected after the opening bracket of a call: the start of an argument or, for a call without arguments, `)`. */
const ExpressionStartsOrClose = ExpressionStarts.replace("'(',", "'(', ')',")

/** Macros by name: allowed numbers of variables, and whether a filter argument may precede the body. */
const Macros: { readonly [name: string]: { macro: Macro; variables: readonly number[]; filter: boolean } } = {
  all: { macro: 'all', variables: [1, 2], filter: false },
  exists: { macro: 'exists', variables: [1, 2], filter: false },
  exists_one: { macro: 'existsOne', variables: [1, 2], filter: false },
  existsOne: { macro: 'existsOne', variables: [2], filter: false },
  map: { macro: 'map', variables: [1], filter: true },
  filter: { macro: 'filter', variables: [1], filter: false },
  transformList: { macro: 'map', variables: [2], filter: true },
  transformMap: { macro: 'transformMap', variables: [2], filter: true },
  transformMapEntry: { macro: 'transformMapEntry', variables: [2], filter: true },
}

function bindNode([name, value, body]: readonly Node[], at: number): Node {
  if (name!.kind !== 'name') throw new SyntaxProblem(name!.at, 'cel.bind() variable names must be simple identifiers')
  return { kind: 'bind', at, variable: name!.name, value: value!, body: body! }
}

function memberCall(target: Node, name: string, args: readonly Node[], at: number): Node {
  if ((name === 'optMap' || name === 'optFlatMap') && args.length === 2) {
    return { kind: 'optMap', at, of: target, variable: variableOf(args[0]!), body: args[1]!, flat: name === 'optFlatMap' }
  }
  if (name === 'sortBy' && args.length === 2) {
    const keys: Node = { kind: 'macro', at, macro: 'map', range: target, variables: [variableOf(args[0]!)], body: args[1]! }
    return { kind: 'call', at, name: '@sortByAssociatedKeys', target, args: [keys] }
  }
  const definition = Object.hasOwn(Macros, name) ? Macros[name] : undefined
  const count = definition?.variables.find(
    (variables) => args.length === variables + 1 || (definition.filter && args.length === variables + 2),
  )
  if (!definition || count === undefined) return { kind: 'call', at, name, target, args }
  const variables = args.slice(0, count).map(variableOf)
  const filter = args.length === count + 2 ? args[count] : undefined
  return {
    kind: 'macro',
    at,
    macro: definition.macro,
    range: target,
    variables,
    ...(filter ? { filter } : {}),
    body: args.at(-1)!,
  }
}

function variableOf(node: Node): string {
  if (node.kind !== 'name') throw new SyntaxProblem(node.at, 'argument must be a simple name')
  return node.name
}
