/**
 * Estimates the maximum cost of an expression before it runs: each step at its highest cost, for the largest values that the schema
 * allows. The API server rejects a CRD whose rules could cost too much.
 * Upstream: cel-go checker/cost.go v0.26, with the environment of apiserver v0.36. The cost of a macro is that of its expansion upstream.
 */
import { callCost, type Operand, Range, unknownRange } from './call-cost.ts'
import { compile, type CheckedNode, type Variable } from './compile.ts'
import type { DeclaredSize } from './declared-size.ts'
import { kubernetesFunctions } from './environment.ts'
import { type Dialect, parse } from './parse.ts'
import type { Node } from './syntax.ts'
import { dyn, type Type } from './type.ts'

interface Options extends Dialect {
  /** Name of the only variable whose size is known, `rootSize`; absent: all variables have this size. */
  readonly rootVariable?: string
}

/**
 * Returns the maximum cost of an expression. `rootSize` is the maximum size of each of its variables, or only of `options.rootVariable`.
 * @throws CompileError
 */
export function estimatedCost(
  source: string,
  variables: readonly Variable[],
  rootSize: DeclaredSize,
  options: Options = {},
): number {
  const node = parse(source, options)
  const checkedNodes = new Map<Node, CheckedNode>()
  compile(source, node, variables, kubernetesFunctions, checkedNodes)
  return new Estimator(checkedNodes, rootSize, options.rootVariable).estimate(node, new Map()).cost.max
}

/** A variable of a macro or of `cel.bind`, with the declared and the estimated size of its values. */
interface MacroVariable {
  readonly declaration: Declaration
  readonly size?: Range | undefined
  readonly entry?: Entry | undefined
}

type Scope = ReadonlyMap<string, MacroVariable>

/** Declaration of a value in the schema: its size, if known. `undefined` for values that are not read from an object. */
type Declaration = { readonly size: DeclaredSize | undefined } | undefined

/** Sizes of the keys (or indexes) and values of a list or map. */
interface Entry {
  readonly of: 'list' | 'map'
  readonly key: Range
  readonly value: Range
}

interface Estimate {
  readonly type: Type
  readonly cost: Range
  readonly size: Range | undefined
  readonly entry: Entry | undefined
  readonly declaration: Declaration
}

const exactCost = (cost: number) => new Range(cost, cost)
const noCost = exactCost(0)
const one = exactCost(1)
const ListBase = exactCost(10)
const MapBase = exactCost(30)

type NodeOf<Kind extends Node['kind']> = Extract<Node, { kind: Kind }> & { kind: Kind }

class Estimator {
  readonly #checkedNodes: ReadonlyMap<Node, CheckedNode>
  readonly #rootSize: DeclaredSize
  readonly #rootVariable: string | undefined

  constructor(checkedNodes: ReadonlyMap<Node, CheckedNode>, rootSize: DeclaredSize, rootVariable: string | undefined) {
    this.#checkedNodes = checkedNodes
    this.#rootSize = rootSize
    this.#rootVariable = rootVariable
  }

  estimate(node: Node, scope: Scope): Estimate {
    const type = this.#checkedNodes.get(node)?.type ?? dyn
    switch (node.kind) {
      case 'literal':
        return this.#undeclared(type, noCost, exactCost(literalSize(node.value)))
      case 'name': {
        const local = scope.get(node.name)
        const declaration = local ? local.declaration : this.#rootOf(node.name)
        return { type, cost: one, declaration, size: sizeAt(declaration) ?? sizeOfType(type) ?? local?.size, entry: local?.entry }
      }
      case 'has':
        return this.#undeclared(type, this.estimate(node.of, scope).cost)
      case 'select':
        return this.#select(node, type, scope)
      case 'call':
        return this.#call(node, type, scope)
      case 'list': {
        const items = node.items.map(({ value }) => this.estimate(value, scope))
        const cost = sum(items.map((item) => item.cost)).plus(ListBase)
        return {
          ...this.#undeclared(type, cost, exactCost(items.length)),
          entry: { of: 'list', key: one, value: unionOfSizes(items) },
        }
      }
      case 'map': {
        const keys = node.entries.map(({ key }) => this.estimate(key, scope))
        const values = node.entries.map(({ value }) => this.estimate(value, scope))
        const cost = sum([...keys, ...values].map((part) => part.cost)).plus(MapBase)
        return {
          ...this.#undeclared(type, cost, exactCost(keys.length)),
          entry: { of: 'map', key: unionOfSizes(keys), value: unionOfSizes(values) },
        }
      }
      case 'and':
      case 'or': {
        const parts = node.operands.map((operand) => this.estimate(operand, scope).cost)
        return this.#undeclared(type, new Range(parts[0]!.min, sum(parts).max))
      }
      case 'choice': {
        const condition = this.estimate(node.condition, scope)
        const yes = this.estimate(node.yes, scope)
        const no = this.estimate(node.no, scope)
        const size = (yes.size ?? unknownRange).union(no.size ?? unknownRange)
        const cost = condition.cost.plus(yes.cost.union(no.cost))
        return { ...this.#undeclared(type, cost, size), entry: unionOfEntries(yes.entry, no.entry) }
      }
      case 'macro':
        return this.#macro(node, type, scope)
      case 'optMap':
        return this.#optMap(node, type, scope)
      case 'bind': {
        const { cost, size, entry, declaration } = this.estimate(node.value, scope)
        const body = this.estimate(node.body, new Map(scope).set(node.variable, { declaration, size, entry }))
        // Upstream's expansion creates an empty list, which costs as much as creating any other list.
        return { ...body, declaration: undefined, cost: ListBase.plus(cost).plus(body.cost) }
      }
    }
  }

  /** Estimate for a value that is not read from an object. */
  #undeclared(type: Type, cost: Range, size = sizeOfType(type)): Estimate {
    return { type, cost, size, entry: undefined, declaration: undefined }
  }

  /**
   * Returns the declaration of a member of a value. Upstream: a member of a value that is not read from an object has `rootSize`, or an
   * unknown size if the option `rootVariable` is set.
   */
  #member(declaration: Declaration, select: (declared: DeclaredSize) => DeclaredSize | undefined): Declaration {
    return declaration ? { size: declaration.size && select(declaration.size) } : this.#rootOf(undefined)
  }

  #rootOf(name: string | undefined): Declaration {
    return { size: this.#rootVariable === undefined || this.#rootVariable === name ? this.#rootSize : undefined }
  }

  #items = (declaration: Declaration): Declaration => this.#member(declaration, ({ item }) => item)

  #select(node: NodeOf<'select'>, type: Type, scope: Scope): Estimate {
    // The selection is the name of a type, such as `net.IP`.
    if (type.kind === 'type' && !this.#checkedNodes.has(node.of)) return this.#undeclared(type, one)
    const operand = this.estimate(node.of, scope)
    if (node.optional) return this.#undeclared(type, operand.cost.plus(one))
    const declaration = this.#member(operand.declaration, ({ fields, others }) => fields?.[node.field] ?? others)
    const cost = ['map', 'object', 'parameter'].includes(operand.type.kind) ? operand.cost.plus(one) : operand.cost
    return { type, cost, declaration, size: sizeAt(declaration) ?? sizeOfType(type), entry: undefined }
  }

  #call(node: NodeOf<'call'>, type: Type, scope: Scope): Estimate {
    const { name = node.name, overloads = [], isMethod = false } = this.#checkedNodes.get(node) ?? {}
    const args = node.args.map((arg) => this.estimate(arg, scope))
    const argCosts = sum(args.map((arg) => arg.cost))
    if (name === 'dyn') {
      const [arg] = args as [Estimate]
      return { type, cost: argCosts.plus(one), size: arg.size, entry: arg.entry, declaration: undefined }
    }
    const target = isMethod ? this.estimate(node.target!, scope) : undefined
    const parts = args.map((arg, index) => this.#operand(arg, node.args[index]!))
    const part = target && this.#operand(target, node.target!)
    let cost = new Range(Number.POSITIVE_INFINITY, 0)
    let size: Range | undefined
    let declaration: Declaration
    let entry: Entry | undefined
    for (const { parameters } of overloads) {
      const estimated = callCost({ name, parameters, target: part, args: parts })
      cost = cost.union(estimated.cost.plus(argCosts))
      if (estimated.size) size = size ? size.union(estimated.size) : estimated.size
      if (name === '_[_]' && (parameters[0]!.kind === 'list' || parameters[0]!.kind === 'map')) {
        size = args[0]!.entry?.value
        declaration = this.#items(args[0]!.declaration)
      }
      size ??= sizeAt(declaration) ?? sizeOfType(type)
      if (name === '_+_') entry = unionOfEntries(args[0]!.entry, args[1]!.entry)
    }
    if (name === '@sortByAssociatedKeys') cost = boundOnce(cost, target!.cost)
    return { type, cost: target ? target.cost.plus(cost) : cost, size, entry, declaration }
  }

  #operand({ type, size, declaration }: Estimate, { kind, ...node }: Node): Operand {
    const isContainer = type.kind === 'list' || type.kind === 'map'
    const item = declaration ? sizeAt({ size: declaration.size?.item }) : undefined
    return {
      type,
      size: size ?? unknownRange,
      ...(isContainer ? { items: { type: type.kind === 'list' ? type.item : type.key, size: item ?? unknownRange } } : {}),
      ...(kind === 'literal' && 'value' in node && typeof node.value === 'bigint' ? { literal: Number(node.value) } : {}),
    }
  }

  #macro(node: NodeOf<'macro'>, type: Type, scope: Scope): Estimate {
    const range = this.estimate(node.range, scope)
    const isList = (range.entry?.of ?? range.type.kind) === 'list'
    const values: MacroVariable = { declaration: this.#items(range.declaration), size: range.entry?.value }
    const keys: MacroVariable = {
      declaration: this.#member(range.declaration, ({ key }) => (isList ? undefined : key)),
      size: range.entry?.key,
    }
    const [first = '', second] = node.variables
    const innerScope = new Map(scope)
    if (second !== undefined) innerScope.set(first, keys).set(second, values)
    else innerScope.set(first, isList ? values : keys)

    const body = this.estimate(node.body, innerScope)
    const filter = node.filter && this.estimate(node.filter, innerScope).cost
    const count = range.size ?? unknownRange
    const cost = (init: number, each: Range, result: number) =>
      range.cost.plus(exactCost(init)).plus(exactCost(result)).plus(count.times(each))
    const withFilter = (step: Range) => (filter ? filter.plus(step.union(one)) : step)
    // Upstream's expansions read accumulator variables, which costs as much as reading any variable.
    switch (node.macro) {
      case 'all':
        return this.#undeclared(type, cost(0, exactCost(2).plus(new Range(1, body.cost.max + 1)), 1), one)
      case 'exists':
        return this.#undeclared(type, cost(0, exactCost(3).plus(new Range(1, body.cost.max + 1)), 1), one)
      case 'existsOne':
        return this.#undeclared(type, cost(0, body.cost.plus(new Range(1, 2)), 2), one)
      case 'filter':
        return this.#list(type, cost(10, body.cost.plus(new Range(1, 13)), 1), count, isList ? values : keys)
      case 'map':
        return this.#list(type, cost(10, withFilter(body.cost.plus(exactCost(12))), 1), count, body)
      case 'transformMap':
        return this.#undeclared(type, cost(30, withFilter(body.cost.plus(exactCost(3))), 1), count)
      case 'transformMapEntry':
        return this.#undeclared(type, cost(30, withFilter(body.cost.plus(exactCost(2))), 1), count)
    }
  }

  /** Estimate for a list that a macro returns: at most as long as the range of the macro. */
  #list(type: Type, cost: Range, count: Range, item: Pick<MacroVariable, 'declaration' | 'size'>): Estimate {
    const size = sizeAt(item.declaration) ?? item.size ?? unknownRange
    return { ...this.#undeclared(type, cost, count), entry: { of: 'list', key: one, value: new Range(0, size.max) } }
  }

  #optMap(node: NodeOf<'optMap'>, type: Type, scope: Scope): Estimate {
    const optional = this.estimate(node.of, scope)
    const inner = optional.type.kind === 'optional' ? optional.type.of : dyn
    const body = this.estimate(node.body, new Map(scope).set(node.variable, { declaration: undefined, size: sizeOfType(inner) }))
    const operandCost = optional.cost.plus(one)
    // Upstream's expansion evaluates the operand twice, and binds its value as `cel.bind` does.
    const bodyCost = ListBase.plus(optional.cost.plus(one)).plus(body.cost)
    return this.#undeclared(type, operandCost.plus((node.flat ? bodyCost : bodyCost.plus(one)).union(one)), unknownRange)
  }
}

/**
 * Returns the cost of `sortBy` without the second evaluation of its list. Upstream's expansion binds the list to a variable (cost 10), and
 * reads the variable twice (cost 2).
 */
const boundOnce = (cost: Range, target: Range): Range => new Range(cost.min - target.min + 12, cost.max - target.max + 12)

const sum = (costs: readonly Range[]): Range => costs.reduce((total, cost) => total.plus(cost), noCost)

const sizeAt = (declaration: Declaration): Range | undefined =>
  declaration?.size ? new Range(0, declaration.size.max) : undefined

function sizeOfType(type: Type): Range | undefined {
  if (type.kind === 'optional') return sizeOfType(type.of)
  return ['bool', 'double', 'duration', 'int', 'timestamp', 'uint'].includes(type.kind) ? one : undefined
}

function literalSize(value: NodeOf<'literal'>['value']): number {
  if (typeof value === 'string') return Array.from(value).length
  return value instanceof Uint8Array ? value.length : 1
}

/** Returns the range from the smallest to the largest size. */
const unionOfSizes = (parts: readonly Estimate[]): Range =>
  parts.length === 0 ? noCost : parts.map(({ size }) => size ?? unknownRange).reduce((union, size) => union.union(size))

const unionOfEntries = (a: Entry | undefined, b: Entry | undefined): Entry | undefined =>
  a && b && { of: a.of, key: a.key.union(b.key), value: a.value.union(b.value) }
