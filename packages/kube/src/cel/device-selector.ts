/**
 * CEL expressions that select devices by the properties that their drivers publish, such as attributes.
 * Upstream: k8s.io/dynamic-resource-allocation/cel, v0.36, with the features that are on by default.
 */
import { CompileError } from './syntax.ts'
import type { DeclaredSize } from './declared-size.ts'
import { estimatedCost } from './estimate.ts'
import { expression } from './expression.ts'
import { any, bool, isAny, mapOf, string, type Type, typeText } from './type.ts'

/** Validation error of an expression that selects devices. */
export type DeviceSelectorProblem = { readonly kind: 'invalid'; readonly message: string } | { readonly kind: 'too costly' }

/** Validates an expression that selects devices; returns `undefined` for a valid expression. */
export function deviceSelectorProblem(source: string): DeviceSelectorProblem | undefined {
  let type: Type
  try {
    type = expression(source, variables, dialect).type
  } catch (err) {
    if (err instanceof CompileError) return { kind: 'invalid', message: `compilation failed: ${err.message}` }
    throw err
  }
  if (type.kind !== 'bool' && !isAny(type)) {
    // Upstream prints the full name of the type `any` here.
    const name = typeText(type).replaceAll(/\bany\b/g, 'google.protobuf.Any')
    return { kind: 'invalid', message: `must evaluate to bool or the unknown type, not ${name}` }
  }
  return estimatedCost(source, variables, deviceSize, { ...dialect, rootVariable: 'device' }) > CostLimit
    ? { kind: 'too costly' }
    : undefined
}

const CostLimit = 1_000_000
const dialect = { bindings: true }

const quantity: Type = { kind: 'opaque', name: 'kubernetes.Quantity' }

const fields: ReadonlyMap<string, Type> = new Map([
  ['driver', string],
  ['allowMultipleAllocations', bool],
  ['attributes', mapOf(string, mapOf(string, any))],
  ['capacity', mapOf(string, mapOf(string, quantity))],
])
const variables = [
  { name: 'device', type: { kind: 'object', name: 'kubernetes.DRADevice', field: (name: string) => fields.get(name) } as const },
]

const size = (max: number): DeclaredSize => ({ max, serialized: 0 })
const MaxMembers = 32
const domain = size(63)
const id = size(32)
const attribute = size(64)
const deviceSize: DeclaredSize = {
  ...size(0),
  fields: {
    driver: size(63),
    allowMultipleAllocations: size(1),
    attributes: {
      ...size(MaxMembers),
      key: domain,
      item: { ...size(MaxMembers), key: id, item: attribute, others: attribute },
    },
    capacity: { ...size(MaxMembers), key: domain, item: { ...size(MaxMembers), key: id, item: size(0) } },
  },
}
