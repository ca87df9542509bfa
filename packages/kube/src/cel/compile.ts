/**
 * Checks the types of a CEL expression and compiles it to a function, in one traversal of its syntax tree. Values of type `dyn` are checked
 * at run time. The type `any` is a `dyn` for values declared without a type. Unlike another `dyn`, it cannot be iterated over and, except in
 * arguments of `format`, not be mixed with other types in a literal.
 */
import { compilePattern } from '../structural/pattern.ts'
import {
  costOf,
  evaluateLogic,
  each,
  entriesOf,
  equals,
  type Evaluate,
  indexed,
  isIn,
  lookUp,
  lookUpPlain,
  lookUpIndex,
  type Loop,
  mapped,
  matchingCost,
  noOverload,
  asOptional,
  quantified,
  selected,
  sizeOf,
  spend,
} from './evaluate.ts'
import { durationOf, timestampOf } from './library/time.ts'
import { type Functions, type Overload } from './signature.ts'
import { CompileError, type Issue, type Node } from './syntax.ts'
import {
  accepts,
  any,
  type Bindings,
  bool,
  substitute,
  dyn,
  isAssignable,
  int,
  isAny,
  isKnown,
  listOf,
  mapOf,
  optionalOf,
  type Type,
  typeText,
} from './type.ts'
import { CelList, EvaluationError, LiteralMap, none, Optional, TypeValue, Uint, type Value } from './value.ts'

export interface Compiled {
  readonly type: Type
  readonly evaluate: Evaluate
}

export interface Variable {
  readonly name: string
  readonly type: Type
}

/** Result of type checking one node. Only calls of functions have members other than `type`. */
export interface CheckedNode {
  readonly type: Type
  /** Name of the function, with its namespace. */
  readonly name?: string
  /** Overloads that the types of the arguments allow. */
  readonly overloads?: readonly Overload[]
  /** Whether the call has the form `target.name(…)`, and the target is the first argument. */
  readonly isMethod?: boolean
}

/**
 * Checks the types of a parsed expression and compiles it. The variables occupy the first `slots` of an evaluation (`Run`), in order. Type
 * information is added to `checkedNodes`.
 *
 * @param source text of the expression, for error messages
 * @throws CompileError
 */
export function compile(
  source: string,
  node: Node,
  variables: readonly Variable[],
  functions: Functions,
  checkedNodes?: Map<Node, CheckedNode>,
): Compiled {
  const compiler = new Compiler(functions, checkedNodes)
  const scope: Scope = {
    variables: new Map(variables.map(({ name, type }, slot) => [name, { type, slot }])),
    size: variables.length,
  }
  const compiled = compiler.compile(node, scope)
  if (compiler.issues.length > 0) throw new CompileError(source, compiler.issues)
  return compiled
}

interface Scope {
  readonly variables: ReadonlyMap<string, { readonly type: Type; readonly slot: number }>
  readonly size: number
}

const innerScope = (scope: Scope, added: readonly Variable[]): Scope => ({
  variables: new Map([
    ...scope.variables,
    ...added.map(({ name, type }, index) => [name, { type, slot: scope.size + index }] as const),
  ]),
  size: scope.size + added.length,
})

/** Names of types. In CEL a type is also a value. */
const TypeNames: ReadonlySet<string> = new Set(
  `bool int uint double string bytes list map null_type type optional_type google.protobuf.Timestamp google.protobuf.Duration
   net.IP net.CIDR kubernetes.URL kubernetes.Quantity kubernetes.NamedFormat kubernetes.Semver`.split(/\s+/),
)

/** Result for a node with an error. It has type `dyn`, so that outer nodes report no further error. */
const failedNode: Compiled = { type: dyn, evaluate: () => null }

class Compiler {
  readonly #functions: Functions
  readonly #checkedNodes: Map<Node, CheckedNode> | undefined
  readonly issues: Issue[] = []
  /** Above zero while the arguments of `format` are compiled: literals in them may have items of different types. */
  #mixedDepth = 0

  constructor(functions: Functions, checkedNodes: Map<Node, CheckedNode> | undefined) {
    this.#functions = functions
    this.#checkedNodes = checkedNodes
  }

  #fail(at: number, message: string): Compiled {
    this.issues.push({ at, message })
    return failedNode
  }

  compile(node: Node, scope: Scope): Compiled {
    const compiled = this.#compile(node, scope)
    this.#checkedNodes?.set(node, { ...this.#checkedNodes.get(node), type: compiled.type })
    return compiled
  }

  #compile(node: Node, scope: Scope): Compiled {
    switch (node.kind) {
      case 'literal':
        return compileLiteral(node.value)
      case 'name':
        return this.#name(node, scope)
      case 'select':
      case 'has':
        return this.#select(node, scope)
      case 'call':
        return this.#call(node, scope)
      case 'list':
        return this.#list(node, scope)
      case 'map':
        return this.#map(node, scope)
      case 'and':
      case 'or':
        return this.#logic(node, scope)
      case 'choice':
        return this.#choice(node, scope)
      case 'macro':
        return this.#macro(node, scope)
      case 'optMap':
        return this.#optMap(node, scope)
      case 'bind':
        return this.#bind(node, scope)
    }
  }

  #name({ name, at }: NodeOf<'name'>, scope: Scope): Compiled {
    const variable = scope.variables.get(name)
    if (variable) {
      const { slot, type } = variable
      return { type, evaluate: (run) => run.slots[slot]! }
    }
    return compileTypeName(name) ?? this.#fail(at, `undeclared reference to '${name}' (in container '')`)
  }

  #select(node: NodeOf<'select'> | NodeOf<'has'>, scope: Scope): Compiled {
    const path = node.kind === 'select' ? dottedName(node) : undefined
    if (path !== undefined && !scope.variables.has(path.slice(0, path.indexOf('.')))) {
      const named = compileTypeName(path)
      if (named) return named
    }
    const qualified = path === undefined ? undefined : scope.variables.get(path)
    if (qualified) return { type: qualified.type, evaluate: (run) => run.slots[qualified.slot]! }
    const { field, at } = node
    const operand = this.compile(node.of, scope)
    const operandType = operand.type.kind === 'optional' ? operand.type.of : operand.type
    const type = this.#fieldType(operandType, field, at)
    if (type === undefined) return failedNode
    const { evaluate } = operand
    if (node.kind === 'has') {
      return { type: bool, evaluate: (run) => (spend(run, 1), lookUpPlain(evaluate(run), field) !== undefined) }
    }
    if (node.optional || operand.type.kind === 'optional') {
      return { type: optionalOf(type), evaluate: (run) => (spend(run, 1), asOptional(lookUp(evaluate(run), field))) }
    }
    return {
      type,
      evaluate: (run) => {
        spend(run, 1)
        const value = evaluate(run)
        const member = lookUpPlain(value, field)
        if (value instanceof Optional) return asOptional(member)
        if (member === undefined) throw new EvaluationError(`no such key: ${field}`)
        return member
      },
    }
  }

  #fieldType(container: Type, field: string, at: number): Type | undefined {
    if (container.kind === 'dyn' || container.kind === 'null') return dyn
    if (container.kind === 'map') return container.value
    if (container.kind === 'object') {
      const type = container.field(field)
      if (!type) this.#fail(at, `undefined field '${field}'`)
      return type
    }
    const isStruct = container.kind === 'opaque' && container.name.startsWith('kubernetes.')
    if (isStruct) this.#fail(at, `unexpected failed resolution of '${container.name}'`)
    else this.#fail(at, `type '${typeText(container)}' does not support field selection`)
    return undefined
  }

  #call(node: NodeOf<'call'>, scope: Scope): Compiled {
    const { name, target, at } = node
    const namespace = target && dottedName(target)
    const isNamespace = namespace !== undefined && !scope.variables.has(namespace.split('.')[0]!)
    const namespacedOverloads = isNamespace ? this.#functions.get(`${namespace}.${name}`) : undefined
    const withTarget = target !== undefined && !namespacedOverloads
    const overloads = namespacedOverloads ?? this.#functions.get(withTarget ? `.${name}` : name)
    const displayName = namespacedOverloads ? `${namespace}.${name}` : name
    const nodes = withTarget ? [target, ...node.args] : node.args
    // Upstream: the arguments of `format` may have any types.
    if (name === 'format') this.#mixedDepth++
    const args = nodes.map((arg) => this.compile(arg, scope))
    if (name === 'format') this.#mixedDepth--
    const existsInOtherForm = !overloads && this.#functions.has(withTarget ? name : `.${name}`)
    if (!overloads && !existsInOtherForm) return this.#fail(at, `undeclared reference to '${displayName}' (in container '')`)
    if (args.includes(failedNode)) return failedNode
    const candidates: { overload: Overload; result: Type }[] = []
    for (const overload of overloads ?? []) {
      if (overload.parameters.length !== args.length) continue
      const bindings: Bindings = new Map()
      if (!overload.parameters.every((parameter, index) => isAssignable(parameter, args[index]!.type, bindings))) continue
      candidates.push({ overload, result: substitute(overload.result, bindings) })
    }
    if (candidates.length === 0) {
      const types = args.map(({ type }) => typeText(type))
      const applied = withTarget ? `${types[0]}.(${types.slice(1).join(', ')})` : `(${types.join(', ')})`
      return this.#fail(at, `found no matching overload for '${displayName}' applied to '${applied}'`)
    }
    const [{ result }] = candidates as [(typeof candidates)[0]]
    this.#checkedNodes?.set(node, {
      type: dyn,
      name: displayName,
      overloads: candidates.map(({ overload }) => overload),
      isMethod: withTarget,
    })
    return {
      type: candidates.every((candidate) => typeText(candidate.result) === typeText(result)) ? result : dyn,
      evaluate: this.#callOf(displayName, nodes, args, candidates),
    }
  }

  #callOf(
    name: string,
    nodes: readonly Node[],
    args: readonly Compiled[],
    candidates: readonly { overload: Overload }[],
  ): Evaluate {
    const [first, second] = args.map(({ evaluate }) => evaluate) as [Evaluate, Evaluate]
    switch (name) {
      case '_==_':
        return (run) => equals(run, first(run), second(run))
      case '_!=_':
        return (run) => !equals(run, first(run), second(run))
      case '@in':
        return (run) => isIn(run, first(run), second(run))
      case '_[_]':
        return (run) => (spend(run, 1), indexed(first(run), second(run)))
      case '_[?_]':
        return (run) => (spend(run, 1), asOptional(lookUpIndex(first(run), second(run))))
      case 'duration':
      case 'timestamp': {
        const [argument] = nodes
        const read = name === 'duration' ? durationOf : timestampOf
        if (argument?.kind === 'literal' && typeof argument.value === 'string' && !succeeds(read, argument.value)) {
          this.#fail(argument.at, `invalid ${name} argument`)
        }
        break
      }
      case 'matches': {
        const pattern = nodes[1]
        if (pattern?.kind === 'literal' && typeof pattern.value === 'string') {
          const literal = pattern.value
          const compiled = compilePattern(literal)
          if (compiled.error !== undefined) this.#fail(pattern.at, 'invalid matches argument')
          return (run) => {
            const text = first(run)
            if (typeof text !== 'string') throw noOverload()
            spend(run, matchingCost(text, literal))
            return compiled.test(text)
          }
        }
      }
    }
    const evaluates = args.map(({ evaluate }) => evaluate)
    const overloads = candidates.map(({ overload }) => overload)
    const cost = costOf(name)
    // The overload is chosen by values, not by types alone: a value may be null although its type in the schema is `string`.
    return (run) => {
      const values = evaluates.map((evaluate) => evaluate(run))
      const overload = overloads.find(({ parameters }) => parameters.every((type, index) => accepts(type, values[index]!)))
      if (!overload) throw noOverload()
      spend(run, cost(values))
      // oxlint-disable-next-line capstan/no-spread-arguments -- as many as the overload has parameters
      const result = overload.run(...values)
      spend(run, sizeOf(result))
      return result
    }
  }

  #list({ items }: NodeOf<'list'>, scope: Scope): Compiled {
    const parts = items.map(({ value, optional }) => ({ ...this.compile(value, scope), optional, at: value.at }))
    const type = this.#commonType(
      parts.map((part) => ({ type: part.optional ? unwrapOptional(part.type) : part.type, at: part.at })),
    )
    return {
      type: listOf(type),
      evaluate: (run) => {
        spend(run, parts.length + 1)
        const values: Value[] = []
        for (const { evaluate, optional } of parts) {
          const value = evaluate(run)
          if (!optional) values.push(value)
          else if (!(value instanceof Optional)) throw noOverload()
          else if (value.value !== undefined) values.push(value.value)
        }
        return new CelList(values)
      },
    }
  }

  #map({ entries }: NodeOf<'map'>, scope: Scope): Compiled {
    const parts = entries.map((entry) => {
      const key = this.compile(entry.key, scope)
      const value = this.compile(entry.value, scope)
      return { key, value, optional: entry.optional, keyAt: entry.key.at, valueAt: entry.value.at }
    })
    const key = this.#commonType(parts.map((part) => ({ type: part.key.type, at: part.keyAt })))
    const value = this.#commonType(
      parts.map((part) => ({ type: part.optional ? unwrapOptional(part.value.type) : part.value.type, at: part.valueAt })),
    )
    return {
      type: mapOf(key, value),
      evaluate: (run) => {
        spend(run, parts.length + 1)
        const pairs: [Value, Value][] = []
        for (const part of parts) {
          const name = part.key.evaluate(run)
          const member = part.value.evaluate(run)
          if (!part.optional) pairs.push([name, member])
          else if (!(member instanceof Optional)) throw noOverload()
          else if (member.value !== undefined) pairs.push([name, member.value])
        }
        return new LiteralMap(pairs)
      },
    }
  }

  /**
   * Returns the common type of the items, keys or values of a literal; `dyn` if they have none. Reports an error for different types, as
   * upstream, except in arguments of `format`.
   */
  #commonType(parts: readonly { readonly type: Type; readonly at: number }[]): Type {
    let common: Type | undefined
    for (const { type, at } of parts) {
      if (!isKnown(type) && !isAny(type)) continue
      if (!common) common = type
      else if (isAny(common) !== isAny(type) || !isAssignable(common, type, new Map())) {
        if (this.#mixedDepth > 0) return dyn
        this.#fail(at, `expected type '${typeText(common)}' but found '${typeText(type)}'`)
      }
    }
    return !common || parts.some(({ type }) => type.kind === 'dyn' && !isAny(type)) ? dyn : common
  }

  #logic({ kind, operands }: NodeOf<'and' | 'or'>, scope: Scope): Compiled {
    const parts = operands.map((operand) => this.compile(operand, scope))
    parts.forEach(({ type }, index) => this.#checkBool(type, operands[index]!.at))
    const evaluates = parts.map(({ evaluate }) => evaluate)
    const decisive = kind === 'or'
    return { type: bool, evaluate: (run) => evaluateLogic(run, evaluates, decisive) }
  }

  #checkBool(type: Type, at: number): void {
    if (isKnown(type) && type.kind !== 'bool') this.#fail(at, `expected type 'bool' but found '${typeText(type)}'`)
  }

  #choice(node: NodeOf<'choice'>, scope: Scope): Compiled {
    const condition = this.compile(node.condition, scope)
    const yes = this.compile(node.yes, scope)
    const no = this.compile(node.no, scope)
    if ((isKnown(condition.type) && condition.type.kind !== 'bool') || !isAssignable(yes.type, no.type, new Map())) {
      const types = [condition, yes, no].map(({ type }) => typeText(type)).join(', ')
      return this.#fail(node.at, `found no matching overload for '_?_:_' applied to '(${types})'`)
    }
    return {
      type: choiceType(yes.type, no.type),
      evaluate: (run) => {
        const decision = condition.evaluate(run)
        if (typeof decision !== 'boolean') throw noOverload()
        return decision ? yes.evaluate(run) : no.evaluate(run)
      },
    }
  }

  #macro(node: NodeOf<'macro'>, scope: Scope): Compiled {
    const range = this.compile(node.range, scope)
    const types = rangeTypes(range.type, node.variables.length)
    if (!types) {
      const problem = `expression of type '${typeText(range.type)}' cannot be range of a comprehension (must be list, map, or dynamic)`
      return this.#fail(node.range.at, problem)
    }
    const inner = innerScope(
      scope,
      node.variables.map((name, index) => ({ name, type: types[index]! })),
    )
    const filter = node.filter && this.compile(node.filter, inner)
    const body = this.compile(node.body, inner)
    if (node.macro === 'all' || node.macro === 'exists') this.#checkBool(body.type, node.body.at)
    // Upstream expands the other macros to conditional expressions, and reports type errors as errors of the `?:` operator.
    const condition = node.macro === 'existsOne' || node.macro === 'filter' ? body : filter
    if (condition && isKnown(condition.type) && condition.type.kind !== 'bool') {
      const resultType = typeText(node.macro === 'existsOne' ? int : listOf(node.macro === 'filter' ? types[0]! : body.type))
      const applied = `(${typeText(condition.type)}, ${resultType}, ${resultType})`
      this.#fail(node.at, `found no matching overload for '_?_:_' applied to '${applied}'`)
    }
    const loop: Loop = { range: range.evaluate, slot: scope.size, hasTwoVariables: node.variables.length === 2 }
    const step = { filter: filter?.evaluate, body: body.evaluate }
    switch (node.macro) {
      case 'all':
      case 'exists':
        return { type: bool, evaluate: quantified(loop, step.body, node.macro === 'exists') }
      case 'existsOne':
        return { type: bool, evaluate: (run) => selected(run, loop, step.body).length === 1 }
      case 'filter': {
        const item = range.type.kind === 'list' || range.type.kind === 'map' ? types[0]! : dyn
        return { type: listOf(item), evaluate: (run) => new CelList(selected(run, loop, step.body)) }
      }
      case 'map':
        return {
          type: listOf(body.type),
          evaluate: (run) => new CelList(Array.from(each(run, loop, step.filter), () => step.body(run))),
        }
      case 'transformMap':
        return {
          type: mapOf(loop.hasTwoVariables && range.type.kind === 'list' ? int : types[0]!, body.type),
          evaluate: (run) => new LiteralMap(mapped(run, loop, step, (key) => [[key, step.body(run)]])),
        }
      case 'transformMapEntry':
        return {
          type: body.type.kind === 'map' ? body.type : dyn,
          evaluate: (run) => new LiteralMap(mapped(run, loop, step, () => entriesOf(step.body(run)))),
        }
    }
  }

  #bind(node: NodeOf<'bind'>, scope: Scope): Compiled {
    const value = this.compile(node.value, scope)
    const { type, evaluate } = this.compile(node.body, innerScope(scope, [{ name: node.variable, type: value.type }]))
    const slot = scope.size
    return {
      type,
      evaluate: (run) => {
        run.slots[slot] = value.evaluate(run)
        return evaluate(run)
      },
    }
  }

  #optMap(node: NodeOf<'optMap'>, scope: Scope): Compiled {
    const optional = this.compile(node.of, scope)
    if (isKnown(optional.type) && optional.type.kind !== 'optional') {
      const name = node.flat ? 'optFlatMap' : 'optMap'
      return this.#fail(node.at, `found no matching overload for '${name}' applied to '${typeText(optional.type)}.()'`)
    }
    const type = optional.type.kind === 'optional' ? optional.type.of : dyn
    const body = this.compile(node.body, innerScope(scope, [{ name: node.variable, type }]))
    const slot = scope.size
    return {
      type: node.flat ? (body.type.kind === 'optional' ? body.type : optionalOf(dyn)) : optionalOf(body.type),
      evaluate: (run) => {
        spend(run, 1)
        const value = optional.evaluate(run)
        if (!(value instanceof Optional)) throw noOverload()
        if (value.value === undefined) return none
        run.slots[slot] = value.value
        const result = body.evaluate(run)
        if (!node.flat) return new Optional(result)
        if (!(result instanceof Optional)) throw noOverload()
        return result
      },
    }
  }
}

type NodeOf<Kind extends Node['kind']> = Extract<Node, { kind: Kind }> & { kind: Kind }

const unwrapOptional = (type: Type): Type => (type.kind === 'optional' ? type.of : dyn)

/**
 * Returns the type of a conditional expression. A branch that is null takes the type of the other branch. If the type of a branch is
 * known only at run time, so is the type of the result.
 */
function choiceType(yes: Type, no: Type): Type {
  if (isAny(yes) || isAny(no)) return any
  if (yes.kind === 'null') return no
  return isKnown(yes) && no.kind !== 'dyn' ? yes : dyn
}

function compileLiteral(value: NodeOf<'literal'>['value']): Compiled {
  if (value === null) return { type: { kind: 'null' }, evaluate: () => null }
  if (typeof value === 'object' && 'uint' in value) {
    const uint = new Uint(value.uint)
    return { type: { kind: 'uint' }, evaluate: () => uint }
  }
  const kinds = { boolean: 'bool', bigint: 'int', number: 'double', string: 'string', object: 'bytes' } as const
  return { type: { kind: kinds[typeof value as keyof typeof kinds] }, evaluate: () => value }
}

function succeeds(read: (text: string) => unknown, text: string): boolean {
  try {
    read(text)
    return true
  } catch (err) {
    if (err instanceof EvaluationError) return false
    throw err
  }
}

function compileTypeName(name: string): Compiled | undefined {
  if (!TypeNames.has(name)) return undefined
  const value = new TypeValue(name)
  return { type: { kind: 'type' }, evaluate: () => value }
}

/** Returns the dotted name that the node consists of, such as `a.b.c`; `undefined` for other nodes. */
function dottedName(node: Node): string | undefined {
  if (node.kind === 'name') return node.name
  if (node.kind !== 'select' || node.optional) return undefined
  const operandName = dottedName(node.of)
  return operandName === undefined ? undefined : `${operandName}.${node.field}`
}

/** Returns the types of the variables of a macro; `undefined` when values of the type cannot be iterated over. */
function rangeTypes(range: Type, count: number): readonly Type[] | undefined {
  if (range.kind === 'list') return count === 1 ? [range.item] : [int, range.item]
  if (range.kind === 'map') return count === 1 ? [range.key] : [range.key, range.value]
  return range.kind === 'dyn' && !isAny(range) ? [dyn, dyn] : undefined
}
