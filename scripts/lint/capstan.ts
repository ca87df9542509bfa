/** Lint rules of this repository for oxlint, which loads the default export of this file. */

/** The part of an ESTree node that the rules read. */
interface Node {
  readonly type: string
  readonly parent: Node
  readonly [member: string]: unknown
}

interface Context {
  report(problem: { readonly node: Node; readonly message: string }): void
}

const functions: ReadonlySet<string> = new Set(['ArrowFunctionExpression', 'FunctionExpression', 'FunctionDeclaration'])

/** Whether the name is a rest parameter of a function around the node, as in `(...args) => f(...args)`. The rule checks calls of that function. */
function isRestParameter(node: Node, name: unknown): boolean {
  for (let ancestor = node.parent; ancestor && ancestor.type !== 'Program'; ancestor = ancestor.parent) {
    if (!functions.has(ancestor.type)) continue
    const parameters = ancestor['params'] as readonly Node[]
    if (parameters.some((parameter) => parameter.type === 'RestElement' && (parameter['argument'] as Node)['name'] === name))
      return true
  }
  return false
}

/** Whether the name is an unexported constant at the top level of the checked file, with a bounded value: `const names = ['a', 'b']`. */
function isConstantArray(node: Node, name: unknown): boolean {
  let ancestor = node.parent
  while (ancestor.type !== 'Program') ancestor = ancestor.parent
  for (const statement of ancestor['body'] as readonly Node[]) {
    if (statement.type !== 'VariableDeclaration' || statement['kind'] !== 'const') continue
    for (const { id, init } of statement['declarations'] as readonly { id: Node; init: Node | null }[]) {
      if (id['name'] === name && init) return isBounded(init)
    }
  }
  return false
}

/** Whether the source code limits the number of elements of the spread list. */
function isBounded(node: Node): boolean {
  switch (node.type) {
    case 'ArrayExpression':
      return (node['elements'] as readonly (Node | null)[]).every(
        (element) => element?.type !== 'SpreadElement' || isBounded(element['argument'] as Node),
      )
    case 'ConditionalExpression':
      return isBounded(node['consequent'] as Node) && isBounded(node['alternate'] as Node)
    case 'Identifier':
      return isRestParameter(node, node['name']) || isConstantArray(node, node['name'])
    case 'TSAsExpression':
      return isBounded(node['expression'] as Node)
    default:
      return false
  }
}

/**
 * Forbids `f(...list)` and `new F(...list)`: the arguments of a call are on the stack, which overflows with some 100,000 elements. Lists that
 * come from users can have this size. Allowed are array literals that spread only allowed lists, unexported top-level constants with an
 * allowed value, rest parameters of an enclosing function, and casts (`as`) and conditional expressions of these.
 */
const noSpreadArguments = {
  create: (context: Context) => ({
    SpreadElement(node: Node) {
      if (node.parent.type !== 'CallExpression' && node.parent.type !== 'NewExpression') return
      if (isBounded(node['argument'] as Node)) return
      const message =
        'A long list overflows the stack when it is spread into arguments. Use a loop, or appendAll of @capstan/kube.'
      context.report({ node, message })
    },
  }),
}

export default { meta: { name: 'capstan' }, rules: { 'no-spread-arguments': noSpreadArguments } }
