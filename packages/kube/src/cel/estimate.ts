/**
 * Estimates the maximum cost of an expression before it runs: each step at its highest cost, for the largest values that the schema
 * allows. The API server rejects a CRD whose rules could cost too much.
 * Upstream: cel-go checker/cost.go v0.26, with the environment of apiserver v0.36. The cost of a macro is that of its expansion upstream.
 */
import { callCost, type Part, Range, unknownRange } from './call-cost.ts'
import { compile, type Fact, type Variable } from './compile.ts'
import type { DeclaredSize } from './declared-size.ts'
import { kubernetesFunctions } from './environment.ts'
import { type Dialect, parse } from './parse.ts'
import type { Node } from './syntax.ts'
import { dyn, type Type } from './type.ts'

interface Options extends Dialect {
  /** Name of the variable whose size is `root`; absent: `root` is the size of all variables. */
  readonly root?: string
}

/** Returns the maximum cost of an expression that compiles. `root` is the maximum size of its variables. */
export function estimatedCost(source: string, variables: readonly Variable[], root: DeclaredSize, options: Options = {}): number {
  const node = parse(source, options)
  const facts = new Map<Node, Fact>()
  compile(source, node, variables, kubernetesFunctions, facts)
  return new Estimator(facts, root, options.root).estimate(node, new Map()).cost.max
}

/** A variable of a macro: the place in the schema that declares its values, and the estimated size of the values. */
interface Local {
  readonly place: Place
  readonly size?: Range | undefined
  readonly entry?: Entry | undefined
}

type Scope = ReadonlyMap<string, Local>

/** Place in the schema at which a value is declared; `undefined` for values that are not read from an object. */
type Place = { readonly size: DeclaredSize | undefined } | undefined

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
  readonly place: Place
}

const exactCost = (cost: number) => new Range(cost, cost)
const noCost = exactCost(0)
const one = exactCost(1)
const ListBase = exactCost(10)
const MapBase = exactCost(30)

type NodeOf<Kind extends Node['kind']> = Extract<Node, { kind: Kind }> & { kind: Kind }

class Estimator {
  readonly #facts: ReadonlyMap<Node, Fact>
  readonly #root: DeclaredSize
  readonly #rootName: string | undefined

  constructor(facts: ReadonlyMap<Node, Fact>, root: DeclaredSize, rootName: string | undefined) {
    this.#facts = facts
    this.#root = root
    this.#rootName = rootName
  }

  estimate(node: Node, scope: Scope): Estimate {
    const type = this.#facts.get(node)?.type ?? dyn
    switch (node.kind) {
      case 'literal':
        return this.#withoutPlace(type, noCost, exactCost(literalSize(node.value)))
      case 'name': {
        const local = scope.get(node.name)
        const place = local ? local.place : this.#rootOf(node.name)
        return { type, cost: one, place, size: sizeAt(place) ?? sizeOfType(type) ?? local?.size, entry: local?.entry }
      }
      case 'has':
        return this.#withoutPlace(type, this.estimate(node.of, scope).cost)
      case 'select':
        return this.#select(node, type, scope)
      case 'call':
        return this.#call(node, type, scope)
      case 'list': {
        const items = node.items.map(({ value }) => this.estimate(value, scope))
        const cost = sum(items.map((item) => item.cost)).plus(ListBase)
        return {
          ...this.#withoutPlace(type, cost, exactCost(items.length)),
          entry: { of: 'list', key: one, value: unionOfSizes(items) },
        }
      }
      case 'map': {
        const keys = node.entries.map(({ key }) => this.estimate(key, scope))
        const values = node.entries.map(({ value }) => this.estimate(value, scope))
        const cost = sum([...keys, ...values].map((part) => part.cost)).plus(MapBase)
        return {
          ...this.#withoutPlace(type, cost, exactCost(keys.length)),
          entry: { of: 'map', key: unionOfSizes(keys), value: unionOfSizes(values) },
        }
      }
      case 'all':
      case 'any': {
        const parts = node.operands.map((operand) => this.estimate(operand, scope).cost)
        return this.#withoutPlace(type, new Range(parts[0]!.min, sum(parts).max))
      }
      case 'choice': {
        const condition = this.estimate(node.condition, scope)
        const yes = this.estimate(node.yes, scope)
        const no = this.estimate(node.no, scope)
        const size = (yes.size ?? unknownRange).union(no.size ?? unknownRange)
        const cost = condition.cost.plus(yes.cost.union(no.cost))
        return { ...this.#withoutPlace(type, cost, size), entry: unionOfEntries(yes.entry, no.entry) }
      }
      case 'macro':
        return this.#macro(node, type, scope)
      case 'optMap':
        return this.#optMap(node, type, scope)
      case 'bind': {
        const { cost, size, entry, place } = this.estimate(node.value, scope)
        const body = this.estimate(node.body, new Map(scope).set(node.variable, { place, size, entry }))
        return { ...body, place: undefined, cost: ListBase.plus(cost).plus(body.cost) }
      }
    }
  }

  /** Estimate for a value that is not read from an object. */
  #withoutPlace(type: Type, cost: Range, size = sizeOfType(type)): Estimate {
    return { type, cost, size, entry: undefined, place: undefined }
  }

  /** Upstream: a field of an undeclared value is looked up at the root. */
  #member(place: Place, select: (declared: DeclaredSize) => DeclaredSize | undefined): Place {
    return place ? { size: place.size && select(place.size) } : this.#rootOf(undefined)
  }

  #rootOf(name: string | undefined): Place {
    return { size: this.#rootName === undefined || this.#rootName === name ? this.#root : undefined }
  }

  #items = (place: Place): Place => this.#member(place, ({ item }) => item)

  #select(node: NodeOf<'select'>, type: Type, scope: Scope): Estimate {
    // The selection is the name of a type, such as `net.IP`.
    if (type.kind === 'type' && !this.#facts.has(node.of)) return this.#withoutPlace(type, one)
    const operand = this.estimate(node.of, scope)
    if (node.optional) return this.#withoutPlace(type, operand.cost.plus(one))
    const place = this.#member(operand.place, ({ fields, others }) => fields?.[node.field] ?? others)
    const cost = ['map', 'object', 'parameter'].includes(operand.type.kind) ? operand.cost.plus(one) : operand.cost
    return { type, cost, place, size: sizeAt(place) ?? sizeOfType(type), entry: undefined }
  }

  #call(node: NodeOf<'call'>, type: Type, scope: Scope): Estimate {
    const { name = node.name, overloads = [], isMethod = false } = this.#facts.get(node) ?? {}
    const args = node.args.map((arg) => this.estimate(arg, scope))
    const argCosts = sum(args.map((arg) => arg.cost))
    if (name === 'dyn') {
      const [arg] = args as [Estimate]
      return { type, cost: argCosts.plus(one), size: arg.size, entry: arg.entry, place: undefined }
    }
    const target = isMethod ? this.estimate(node.target!, scope) : undefined
    const parts = args.map((arg, index) => this.#part(arg, node.args[index]!))
    const part = target && this.#part(target, node.target!)
    let cost = new Range(Number.POSITIVE_INFINITY, 0)
    let size: Range | undefined
    let place: Place
    let entry: Entry | undefined
    for (const { parameters } of overloads) {
      const estimated = callCost({ name, parameters, target: part, args: parts })
      cost = cost.union(estimated.cost.plus(argCosts))
      if (estimated.size) size = size ? size.union(estimated.size) : estimated.size
      if (name === '_[_]' && (parameters[0]!.kind === 'list' || parameters[0]!.kind === 'map')) {
        size = args[0]!.entry?.value
        place = this.#items(args[0]!.place)
      }
      size ??= sizeAt(place) ?? sizeOfType(type)
      if (name === '_+_') entry = unionOfEntries(args[0]!.entry, args[1]!.entry)
    }
    if (name === '@sortByAssociatedKeys') cost = boundOnce(cost, target!.cost)
    return { type, cost: target ? target.cost.plus(cost) : cost, size, entry, place }
  }

  #part({ type, size, place }: Estimate, { kind, ...node }: Node): Part {
    const isList = type.kind === 'list' || type.kind === 'map'
    const item = place ? sizeAt({ size: place.size?.item }) : undefined
    return {
      type,
      size: size ?? unknownRange,
      ...(isList ? { items: { type: type.kind === 'list' ? type.item : type.key, size: item ?? unknownRange } } : {}),
      ...(kind === 'literal' && 'value' in node && typeof node.value === 'bigint' ? { literal: Number(node.value) } : {}),
    }
  }

  #macro(node: NodeOf<'macro'>, type: Type, scope: Scope): Estimate {
    const range = this.estimate(node.range, scope)
    const isList = (range.entry?.of ?? range.type.kind) === 'list'
    const values: Local = { place: this.#items(range.place), size: range.entry?.value }
    const keys: Local = {
      place: this.#member(range.place, ({ key }) => (isList ? undefined : key)),
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
        return this.#withoutPlace(type, cost(0, exactCost(2).plus(new Range(1, body.cost.max + 1)), 1), one)
      case 'exists':
        return this.#withoutPlace(type, cost(0, exactCost(3).plus(new Range(1, body.cost.max + 1)), 1), one)
      case 'existsOne':
        return this.#withoutPlace(type, cost(0, body.cost.plus(new Range(1, 2)), 2), one)
      case 'filter':
        return this.#list(type, cost(10, body.cost.plus(new Range(1, 13)), 1), count, isList ? values : keys)
      case 'map':
        return this.#list(type, cost(10, withFilter(body.cost.plus(exactCost(12))), 1), count, body)
      case 'transformMap':
        return this.#withoutPlace(type, cost(30, withFilter(body.cost.plus(exactCost(3))), 1), count)
      case 'transformMapEntry':
        return this.#withoutPlace(type, cost(30, withFilter(body.cost.plus(exactCost(2))), 1), count)
    }
  }

  /** Estimate for a list that a macro returns: at most as long as the range of the macro. */
  #list(type: Type, cost: Range, count: Range, item: Pick<Local, 'place' | 'size'>): Estimate {
    const size = sizeAt(item.place) ?? item.size ?? unknownRange
    return { ...this.#withoutPlace(type, cost, count), entry: { of: 'list', key: one, value: new Range(0, size.max) } }
  }

  #optMap(node: NodeOf<'optMap'>, type: Type, scope: Scope): Estimate {
    const optional = this.estimate(node.of, scope)
    const inner = optional.type.kind === 'optional' ? optional.type.of : dyn
    const body = this.estimate(node.body, new Map(scope).set(node.variable, { place: undefined, size: sizeOfType(inner) }))
    const operandCost = optional.cost.plus(one)
    const bodyCost = ListBase.plus(optional.cost.plus(one)).plus(body.cost)
    return this.#withoutPlace(type, operandCost.plus((node.flat ? bodyCost : bodyCost.plus(one)).union(one)), unknownRange)
  }
}

/** Upstream's expansion of `sortBy` binds the list to a variable, so that it is evaluated once. */
const boundOnce = (cost: Range, target: Range): Range => new Range(cost.min - target.min + 12, cost.max - target.max + 12)

const sum = (costs: readonly Range[]): Range => costs.reduce((total, cost) => total.plus(cost), noCost)

const sizeAt = (place: Place): Range | undefined => (place?.size ? new Range(0, place.size.max) : undefined)

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
