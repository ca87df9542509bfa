/**
 * Normalizes objects to the output of Go's JSON encoder: removes zero values that Go omits, sets absent times and pointers to `null` if
 * Go always writes them, and converts quantities and times to their canonical form. Lists that Go writes as `null` are normalized by the
 * code of each kind. The table of protobuf messages, which is generated from the same Go types, determines which fields Go omits or
 * writes as `null`.
 */
import { badRequest, isNumeric, isRecord, messageOf, parseQuantity, quantityText } from '@capstan/kube'
import { type Component, componentOf, targetOf } from './catalog.ts'
import { goFields } from './go-fields.ts'

/** Normalizes a value: an object or list in place. Returns the value or its replacement. */
type Normalizer = (value: unknown) => unknown

const normalizers = new Map<string, Normalizer>()

/**
 * Normalizes a draft in place. `component` is the name of its schema, such as `io.k8s.api.core.v1.Pod`. The types of its values must have
 * been checked before.
 * @throws StatusError BadRequest for an invalid quantity, RangeError for an invalid time that does not have the canonical form
 */
export function goForm(component: string, object: { [field: string]: unknown }): void {
  normalizerOf(component)(object)
}

function normalizerOf(name: string): Normalizer {
  const cached = normalizers.get(name)
  if (cached) return cached
  const scalar = scalars[name.slice(name.lastIndexOf('.') + 1)]
  if (scalar && name.startsWith('io.k8s.apimachinery.')) {
    normalizers.set(name, scalar)
    return scalar
  }
  let compiled: Normalizer | undefined
  // Types may be recursive: the normalizer is registered before it is compiled.
  const normalizer: Normalizer = (value) => (compiled ??= structNormalizer(name))(value)
  normalizers.set(name, normalizer)
  return normalizer
}

interface Member {
  readonly name: string
  readonly normalizer: Normalizer | undefined
  readonly omitsZero: boolean
  /** Value that an absent field gets; `undefined`: it stays absent. */
  readonly absent: null | undefined
}

function structNormalizer(name: string): Normalizer {
  const component = componentOf(name)
  if (!component) throw new TypeError(`no built-in schema ${name}`)
  const { properties, required = [] } = component
  if (!properties) return memberNormalizer(component) ?? ((value) => value)
  const go = goFields(name)
  const members = Object.entries(properties).map(([field, schema]): Member => {
    const target = targetOf(schema)
    const isTime = target !== undefined && /\.(Time|MicroTime)$/.test(target)
    const zero = go.get(field)
    const omitsZero = zero === 'omitted'
    // Go's encoder writes an absent time as null, also with `omitempty`, which has no effect on structs. It omits only times that are
    // optional pointers, and creationTimestamp, whose tag has `omitzero`.
    const showsTime = isTime && ((omitsZero && field !== 'creationTimestamp') || required.includes(field))
    return {
      name: field,
      normalizer: memberNormalizer(schema),
      omitsZero: omitsZero && !isTime,
      absent: showsTime || zero === 'null' ? null : undefined,
    }
  })
  return (value) => {
    if (!isRecord(value)) return value
    for (const { name: field, normalizer, omitsZero, absent } of members) {
      const member = value[field]
      if (member === undefined) {
        if (absent === null) value[field] = null
        continue
      }
      if (omitsZero && isZero(member)) {
        delete value[field]
        continue
      }
      if (!normalizer) continue
      const normalized = normalizer(member)
      if (normalized !== member) value[field] = normalized
    }
    return value
  }
}

function memberNormalizer(schema: Component): Normalizer | undefined {
  const target = targetOf(schema)
  if (target !== undefined) return normalizerOf(target)
  if (schema.items) {
    const item = memberNormalizer(schema.items)
    return item && ((list) => (Array.isArray(list) ? replaceAll(list, list.keys(), item) : list))
  }
  if (typeof schema.additionalProperties === 'object') {
    const hasQuantities = targetOf(schema.additionalProperties)?.endsWith('.Quantity') === true
    const entry = hasQuantities ? normalizeAmount : memberNormalizer(schema.additionalProperties)
    return entry && ((map) => (isRecord(map) ? replaceAll(map, Object.keys(map), entry) : map))
  }
  return undefined
}

function replaceAll(container: object, keys: Iterable<string | number>, normalizer: Normalizer): object {
  const members = container as { [key: string | number]: unknown }
  for (const key of keys) {
    const normalized = normalizer(members[key])
    if (normalized !== members[key]) members[key] = normalized
  }
  return container
}

const isZero = (value: unknown): boolean =>
  value === '' || value === 0 || value === false || (typeof value === 'object' && value !== null && !hasMembers(value))

function hasMembers(value: object): boolean {
  for (const _ in value) return true
  return false
}

const scalars: { readonly [kind: string]: Normalizer } = {
  Quantity: normalizeQuantity,
  Time: normalizeTime,
  MicroTime: normalizeMicroTime,
}

function normalizeQuantity(value: unknown): unknown {
  if (typeof value !== 'string' && !isNumeric(value)) return value
  return quantityText(readQuantity(value))
}

/** Rounds a quantity of a map, such as a resource list, up to thousandths. Upstream: SetDefaults_ResourceList. */
function normalizeAmount(value: unknown): unknown {
  if (typeof value !== 'string' && !isNumeric(value)) return value
  const { nano, format } = readQuantity(value)
  const remainder = nano % Milli
  return quantityText({ nano: remainder > 0n ? nano + Milli - remainder : nano - remainder, format })
}

const Milli = 1_000_000n

/** @throws StatusError BadRequest */
function readQuantity(value: string | number | bigint) {
  try {
    return parseQuantity(String(value))
  } catch (err) {
    throw badRequest(messageOf(err))
  }
}

function normalizeTime(value: unknown): unknown {
  if (typeof value !== 'string' || PlainTime.test(value)) return value
  return `${new Date(value).toISOString().slice(0, 19)}Z`
}
const PlainTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/

function normalizeMicroTime(value: unknown): unknown {
  if (typeof value !== 'string' || PlainMicroTime.test(value)) return value
  const fraction = /\.(\d+)/.exec(value)?.[1] ?? ''
  return `${new Date(value).toISOString().slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, '0')}Z`
}
const PlainMicroTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/
