/**
 * Declarations of CEL functions by their signatures: `string.charAt(int): string` is a method, `sets.contains(list<T>, list<T>): bool` a
 * function; a single capital letter is a type parameter.
 */
import { bool, dyn, int, listOf, mapOf, optionalOf, string, type Type } from './type.ts'
import type { Value } from './value.ts'

/**
 * Functions by signature. An implementation may rely on the types of its arguments, but not on the types of values in lists, maps and
 * optionals.
 */
export interface Library {
  // biome-ignore lint/suspicious/noExplicitAny: the signature determines the types of the arguments
  readonly [signature: string]: (...args: any[]) => Value
}

/** One overload of a function. The first parameter of a method is its target. */
export interface Overload {
  readonly parameters: readonly Type[]
  readonly result: Type
  readonly run: (...args: Value[]) => Value
}

/** Overloads by name; names of methods begin with a dot. */
export type Functions = Pick<ReadonlyMap<string, readonly Overload[]>, 'get' | 'has'>

/** Declares the functions of libraries. Signatures are parsed at the first look-up, because many programs use no expressions. */
export function functionsOf(libraries: readonly Library[]): Functions {
  let parsed: Functions | undefined
  const functions = () => (parsed ??= overloadsIn(libraries))
  return { get: (name) => functions().get(name), has: (name) => functions().has(name) }
}

function overloadsIn(libraries: readonly Library[]): Functions {
  const functions = new Map<string, Overload[]>()
  for (const library of libraries) {
    for (const [signature, run] of Object.entries(library)) {
      const { name, ...overload } = parseSignature(signature)
      const overloads = functions.get(name)
      if (overloads) overloads.push({ ...overload, run })
      else functions.set(name, [{ ...overload, run }])
    }
  }
  return functions
}

function parseSignature(signature: string): { name: string; parameters: Type[]; result: Type } {
  const [, head = '', args = '', result = ''] = /^(.*?)\(([^)]*)\): (.*)$/.exec(signature)!
  const dot = head.lastIndexOf('.')
  const receiver = dot < 0 ? undefined : typeOf(head.slice(0, dot))
  const parameters = splitTypes(args).map((text) => typeOf(text)!)
  return {
    name: receiver ? head.slice(dot) : head,
    parameters: receiver ? [receiver, ...parameters] : parameters,
    result: typeOf(result)!,
  }
}

function splitTypes(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let part = ''
  for (const letter of text) {
    if (letter === '<') depth++
    if (letter === '>') depth--
    if (letter === ',' && depth === 0) {
      parts.push(part.trim())
      part = ''
    } else part += letter
  }
  if (part.trim() !== '') parts.push(part.trim())
  return parts
}

const Plain: { readonly [name: string]: Type } = {
  dyn,
  bool,
  int,
  string,
  uint: { kind: 'uint' },
  double: { kind: 'double' },
  bytes: { kind: 'bytes' },
  timestamp: { kind: 'timestamp' },
  duration: { kind: 'duration' },
  type: { kind: 'type' },
  URL: { kind: 'opaque', name: 'kubernetes.URL' },
  IP: { kind: 'opaque', name: 'net.IP' },
  CIDR: { kind: 'opaque', name: 'net.CIDR' },
  Quantity: { kind: 'opaque', name: 'kubernetes.Quantity' },
  Format: { kind: 'opaque', name: 'kubernetes.NamedFormat' },
  ...Object.fromEntries(
    ['Authorizer', 'PathCheck', 'GroupCheck', 'ResourceCheck', 'Decision'].map((name) => [
      name,
      { kind: 'opaque' as const, name: `kubernetes.authorization.${name}` },
    ]),
  ),
  Semver: { kind: 'opaque', name: 'kubernetes.Semver' },
}

/** Returns the type that the text denotes; `undefined` for the namespace of a function, such as `sets`. */
function typeOf(text: string): Type | undefined {
  if (/^[A-Z]$/.test(text)) return { kind: 'parameter', name: text }
  const [, generic, inner] = /^(list|map|optional)<(.*)>$/.exec(text) ?? []
  if (generic === undefined) return Plain[text]
  const [first, second] = splitTypes(inner!).map((part) => typeOf(part)!)
  return generic === 'list' ? listOf(first!) : generic === 'optional' ? optionalOf(first!) : mapOf(first!, second!)
}
