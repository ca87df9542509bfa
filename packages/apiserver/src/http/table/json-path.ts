/**
 * The JSONPath of printer columns: fields, quoted fields, descendants (`..`), indexes, slices, wildcards and filters with one path.
 * Upstream: k8s.io/client-go/util/jsonpath, which also has steps of slices (`[0:8:2]`), unions (`[0,2]`), and filters that compare two paths.
 */
import { equal, isNumeric, isRecord, readJSON } from '@capstan/kube'

/** Returns all values that the path finds, in order. */
export type JSONPath = (value: unknown) => unknown[]

type Step = (values: unknown[]) => unknown[]

/** Parses a JSONPath. @throws Error when its syntax is invalid or not supported */
export function jsonPath(text: string): JSONPath {
  const steps = new Reader(text).steps()
  return (value) => steps.reduce<unknown[]>((values, step) => (values.length === 0 ? values : step(values)), [value])
}

const field =
  (name: string): Step =>
  (values) =>
    values.flatMap((v) => (isRecord(v) && v[name] !== undefined && Object.hasOwn(v, name) ? [v[name]] : []))

const children: Step = (values) => values.flatMap((v) => (Array.isArray(v) ? v : isRecord(v) ? Object.values(v) : []))

/**
 * Returns the values and all values inside them, but each object and list once. Upstream finds values several times when a path has two
 * `..`, and their number multiplies with the depth of the object. Columns show only the first value, so the difference does not matter.
 */
const descendants: Step = (values) => {
  const visited = new Set<unknown>()
  const result: unknown[] = []
  const visit = (value: unknown): void => {
    if (typeof value === 'object' && value !== null) {
      if (visited.has(value)) return
      visited.add(value)
    }
    result.push(value)
    for (const child of children([value])) visit(child)
  }
  values.forEach(visit)
  return result
}

const slice =
  (from: number | undefined, to: number | undefined): Step =>
  (values) =>
    values.flatMap((v) => (Array.isArray(v) ? v.slice(from, to) : []))

const index =
  (position: number): Step =>
  (values) =>
    values.flatMap((v) => (Array.isArray(v) && v.at(position) !== undefined ? [v.at(position)] : []))

type Operator = '==' | '!=' | '<' | '<=' | '>' | '>='

const filter =
  (left: JSONPath, operator: Operator | undefined, right: unknown): Step =>
  (values) =>
    values.flatMap((v) =>
      Array.isArray(v)
        ? v.filter((item) => {
            const leftValues = left(item)
            return operator === undefined
              ? leftValues.length > 0
              : leftValues.length > 0 && compare(leftValues[0], operator, right)
          })
        : [],
    )

function compare(left: unknown, operator: Operator, right: unknown): boolean {
  if (operator === '==') return equal(left, right)
  if (operator === '!=') return !equal(left, right)
  const areOrdered = isNumeric(left) ? isNumeric(right) : typeof left === 'string' && typeof right === 'string'
  if (!areOrdered) return false
  const [a, b] = [left as number, right as number]
  return operator === '<' ? a < b : operator === '<=' ? a <= b : operator === '>' ? a > b : a >= b
}

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    const trimmed = text.trim()
    this.#text = trimmed.startsWith('{') && trimmed.endsWith('}') ? trimmed.slice(1, -1) : trimmed
    if (this.#text.startsWith('$')) this.#at = 1
  }

  steps(): Step[] {
    const steps: Step[] = []
    while (this.#at < this.#text.length) steps.push(this.#step())
    return steps
  }

  #step(): Step {
    if (this.#take('..')) {
      if (this.#text[this.#at] === '[') return descendants
      const name = this.#name()
      return (values) => field(name)(descendants(values))
    }
    if (this.#take('.')) {
      if (this.#at === this.#text.length) return (values) => values
      if (this.#text[this.#at] === '[') return this.#step()
      const name = this.#name()
      return name === '*' ? children : field(name)
    }
    if (this.#take('[')) return this.#brackets()
    // The first dot of a path is optional.
    if (this.#at === 0) return field(this.#name())
    throw this.#error()
  }

  #brackets(): Step {
    if (this.#take('?(')) return this.#filter()
    if (this.#take('*]')) return children
    const quote = this.#text[this.#at]
    if (quote === "'" || quote === '"') {
      const name = this.#quoted()
      this.#expect(']')
      return field(name)
    }
    const end = this.#text.indexOf(']', this.#at)
    const [, single, from, to] = /^(?:(-?\d+)|(-?\d*):(-?\d*))$/.exec(this.#text.slice(this.#at, end)) ?? []
    if (end < 0 || (single === undefined && from === undefined)) throw this.#error()
    this.#at = end + 1
    if (single !== undefined) return index(Number(single))
    return slice(from === '' ? undefined : Number(from), to === '' ? undefined : Number(to))
  }

  #filter(): Step {
    const end = this.#text.indexOf(')]', this.#at)
    if (end < 0) throw this.#error()
    const text = this.#text.slice(this.#at, end).trim()
    const { 0: operator, index: operatorAt } = /==|!=|<=|>=|<|>/.exec(text) ?? { 0: undefined, index: text.length }
    const left = text.slice(1, operatorAt).trimEnd()
    if (!text.startsWith('@') || left === '') throw this.#error()
    this.#at = end + 2
    if (operator === undefined) return filter(jsonPath(left), undefined, undefined)
    return filter(jsonPath(left), operator as Operator, this.#literal(text.slice(operatorAt + operator.length).trim()))
  }

  #literal(text: string): unknown {
    const quoted = /^'(.*)'$/.exec(text)
    if (quoted) return quoted[1]
    try {
      return readJSON(text)
    } catch {
      throw this.#error()
    }
  }

  #name(): string {
    let name = ''
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at]!
      if (char === '.' || char === '[') break
      if (char === '\\') this.#at++
      name += this.#text[this.#at++] ?? ''
    }
    if (name === '') throw this.#error()
    return name
  }

  #quoted(): string {
    const quote = this.#text[this.#at++]
    let name = ''
    while (this.#at < this.#text.length && this.#text[this.#at] !== quote) {
      if (this.#text[this.#at] === '\\') this.#at++
      name += this.#text[this.#at++] ?? ''
    }
    this.#expect(quote!)
    return name
  }

  #take(token: string): boolean {
    if (!this.#text.startsWith(token, this.#at)) return false
    this.#at += token.length
    return true
  }

  #expect(token: string): void {
    if (!this.#take(token)) throw this.#error()
  }

  #error(): Error {
    return new Error(`Cannot read JSONPath ${JSON.stringify(this.#text)}: syntax error at position ${this.#at}`)
  }
}
