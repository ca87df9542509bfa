/** Finds the places of a TypeScript file that a mutation test may change, and the statements whose execution by tests is recorded. */
import { parseAst } from 'rolldown/parseAst'

/** A change of a file: the text from `start` to `end` becomes `replacement`. */
export interface Mutant {
  readonly operator: string
  readonly start: number
  readonly end: number
  readonly replacement: string
  readonly line: number
  /**
   * Index in `Mutants.statements` of the innermost statement that contains the change; for a change of a whole body, of the first statement
   * in the body.
   */
  readonly statement: number
}

/** A statement of a block or of a `case`, or the expression that is the body of an arrow function. */
export interface Statement {
  readonly start: number
  readonly end: number
  readonly isExpression: boolean
}

export interface Mutants {
  readonly mutants: readonly Mutant[]
  readonly statements: readonly Statement[]
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}

type Edit = Pick<Mutant, 'operator' | 'start' | 'end' | 'replacement'>

const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === 'string'

const childrenOf = (node: Node): Node[] =>
  Object.values(node)
    .flatMap((value) => (Array.isArray(value) ? (value as unknown[]) : [value]))
    .filter(isNode)

/**
 * Replacements of operators. `editsOf` also swaps `+` and `-`, but only next to a literal number, because `+` also concatenates
 * strings.
 */
const swappedOperators: ReadonlyMap<string, string> = new Map([
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
  ['===', '!=='],
  ['!==', '==='],
  ['&&', '||'],
  ['||', '&&'],
])

const swappedMethods: ReadonlyMap<string, string> = new Map([
  ['every', 'some'],
  ['some', 'every'],
  ['min', 'max'],
  ['max', 'min'],
])

/** Matches calls that only log, count or record events. They are not mutated, because tests need not detect such changes. */
const observingCall = /^(?:await )?[\w.#?!]*\b(?:log|logger|metrics|span|events?)\b[\w.#?!]*\(/

/**
 * Returns the mutants of a file, in the order of the text, and the statements of its functions. Only bodies of functions are changed: tables
 * and constants of a module are evaluated once for many test files, so coverage cannot assign tests to them.
 */
export function mutantsOf(text: string): Mutants {
  const program = parseAst(text, { lang: 'ts' }) as unknown as Node
  const mutants: Mutant[] = []
  const statements: Statement[] = []
  const lineStarts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
  const lineOf = (offset: number) => lineStarts.findLastIndex((start) => start <= offset) + 1

  function addStatement(node: Node, isExpression: boolean): number {
    statements.push({ start: node.start, end: node.end, isExpression })
    return statements.length - 1
  }

  /** @param statement index of the innermost statement of a function that contains the node; `undefined` outside of functions */
  function visit(node: Node, statement: number | undefined): void {
    if (node.type.startsWith('TS') && !isNode(node.expression)) return
    if (statement !== undefined)
      for (const edit of editsOf(node, text)) mutants.push({ ...edit, line: lineOf(edit.start), statement })
    if (node.type === 'ExpressionStatement' && observingCall.test(text.slice(node.start, node.end))) return
    if (isFunction(node)) return visitFunction(node)
    const isBlock = statement !== undefined && (node.type === 'BlockStatement' || node.type === 'SwitchCase')
    for (const child of childrenOf(node)) {
      if (node.type.startsWith('TS') && child !== node.expression) continue
      const starts = isBlock && child !== node.test && child.type !== 'FunctionDeclaration'
      visit(child, starts ? addStatement(child, false) : statement)
    }
  }

  /** Visits the body. Does not change default values of parameters. */
  function visitFunction(node: Node): void {
    const { body } = node
    if (!isNode(body)) return
    if (body.type !== 'BlockStatement') return visit(body, addStatement(body, true))
    const [first] = body.body as Node[]
    if (!first) return
    const entry = addStatement(first, false)
    const isConstructor = /^constructor\b/.test(text.slice(node.start - 'constructor'.length, node.start))
    if (!isConstructor && !returnsValue(body) && (body.body as Node[]).length > 1)
      mutants.push({
        operator: 'return early',
        start: body.start,
        end: body.end,
        replacement: '{}',
        line: lineOf(body.start),
        statement: entry,
      })
    visit(body, entry)
  }

  visit(program, undefined)
  return { mutants: mutants.toSorted((a, b) => a.start - b.start || a.end - b.end), statements }
}

const isFunction = ({ type }: Node): boolean =>
  type === 'FunctionDeclaration' || type === 'FunctionExpression' || type === 'ArrowFunctionExpression'

/** Whether a function returns a value or contains a `yield`. Ignores functions inside it. */
function returnsValue(node: Node): boolean {
  if (node.type === 'ReturnStatement') return isNode(node.argument)
  if (node.type === 'YieldExpression') return true
  return childrenOf(node).some((child) => !isFunction(child) && returnsValue(child))
}

/** Returns the edits of a node, without those of its children. */
function editsOf(node: Node, text: string): Edit[] {
  const source = (node: unknown) => text.slice((node as Node).start, (node as Node).end)
  const replace = (operator: string, { start, end }: Node, replacement: string): Edit => ({ operator, start, end, replacement })
  switch (node.type) {
    case 'IfStatement':
    case 'ConditionalExpression':
      return [replace('negate condition', node.test as Node, `!(${source(node.test)})`)]
    case 'LogicalExpression':
    case 'BinaryExpression': {
      const [left, right] = [node.left as Node, node.right as Node]
      const operator = node.operator as string
      if (operator === '??') return [replace('drop default', node, source(left))]
      const isSum = (operator === '+' || operator === '-') && [left, right].some(({ value }) => typeof value === 'number')
      const swapped = isSum ? (operator === '+' ? '-' : '+') : swappedOperators.get(operator)
      if (swapped === undefined) return []
      const between = text.slice(left.end, right.start)
      const offset = left.end + between.indexOf(operator)
      // Parentheses preserve the precedence in `a && b || c`.
      if (operator === '&&' || operator === '||')
        return [replace(`${operator} to ${swapped}`, node, `((${source(left)}) ${swapped} (${source(right)}))`)]
      return [{ operator: `${operator} to ${swapped}`, start: offset, end: offset + operator.length, replacement: swapped }]
    }
    case 'CallExpression':
      return callEdits(node, source, replace)
    case 'ExpressionStatement': {
      if (observingCall.test(source(node)) || isNode(node.directive)) return []
      const expression = node.expression as Node
      if (expression.type === 'CallExpression' && (expression.callee as Node).type === 'Super') return []
      const edits = [replace('remove statement', node, ';')]
      if (expression.type === 'AwaitExpression')
        edits.push(replace('remove await', expression, `void ${source(expression.argument)}`))
      return edits
    }
    case 'ThrowStatement':
      return [replace('remove throw', node, ';')]
    case 'Literal':
      return typeof node.value === 'boolean' ? [replace('swap boolean', node, String(!node.value))] : []
    default:
      return []
  }
}

function callEdits(
  node: Node,
  source: (node: unknown) => string,
  replace: (operator: string, node: Node, replacement: string) => Edit,
): Edit[] {
  const edits: Edit[] = []
  const callee = node.callee as Node
  const args = node.arguments as Node[]
  if (callee.type === 'MemberExpression' && callee.computed !== true) {
    const property = callee.property as Node
    const name = source(property)
    const swapped = swappedMethods.get(name)
    if (swapped !== undefined && args.length > 0) edits.push(replace(`${name} to ${swapped}`, property, swapped))
    if (name === 'filter' && args.length === 1 && callee.optional !== true)
      edits.push(replace('drop filter', node, source(callee.object)))
  }
  // Drops a last argument only if it is an object literal or named `options` or `signal`. Other arguments are rarely optional, and a call
  // without a required argument does not compile.
  const last = args.at(-1)
  if (args.length > 1 && last && (last.type === 'ObjectExpression' || /^(?:options|signal)$/.test(source(last))))
    edits.push({ operator: 'drop argument', start: args.at(-2)!.end, end: last.end, replacement: '' })
  return edits
}

export const applyMutant = (text: string, { start, end, replacement }: Pick<Mutant, 'start' | 'end' | 'replacement'>): string =>
  text.slice(0, start) + replacement + text.slice(end)

/**
 * Inserts before each statement the expression that `recordingOf` returns for it, so that a run of the file records the statements that it
 * reaches.
 */
export function instrument(text: string, statements: readonly Statement[], recordingOf: (statement: number) => string): string {
  const inserts = statements.flatMap(({ start, end, isExpression }, index) =>
    isExpression
      ? [
          { offset: start, order: index, text: `(${recordingOf(index)}, ` },
          { offset: end, order: -index, text: ')' },
        ]
      : // The previous statement may end without a semicolon.
        [{ offset: start, order: index, text: `;${recordingOf(index)};` }],
  )
  let result = text
  for (const insert of inserts.toSorted((a, b) => b.offset - a.offset || b.order - a.order))
    result = result.slice(0, insert.offset) + insert.text + result.slice(insert.offset)
  return result
}
