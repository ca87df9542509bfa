/**
 * Restores values that an older version cannot express: v1beta2 distinguishes an explicit `false` or `0` from an absent field, older
 * versions do not. The annotation `cluster.x-k8s.io/conversion-data` keeps the v1beta2 object for the round trip.
 */
import { isRecord } from '@capstan/kube'
import type { Struct } from './go-types.ts'

/**
 * Restores the explicit zeros of the booleans or numbers at `path`. `list[name]` finds the same item by that field, `list[]` by index when
 * both lists are equally long; `{schema}` continues through all nested schemas.
 */
export function restoreZero(value: Struct, restored: unknown, path: string): void {
  restoreAt(value, isRecord(restored) ? restored : {}, path.split('.'))
}

function restoreAt(value: Struct, restored: Struct, [step = '', ...rest]: readonly string[]): void {
  const [, name = '', isList, key] = /^([^[]*)(\[(.*)\])?$/.exec(step) ?? []
  if (name === '{schema}') return restoreSchema(value, restored)
  if (isList) return restoreItems(value[name], restored[name], key ?? '', rest)
  if (rest.length === 0) return restoreField(value, restored, name)
  const inner = isRecord(value[name]) ? value[name] : {}
  restoreAt(inner, isRecord(restored[name]) ? restored[name] : {}, rest)
  if (Object.keys(inner).length > 0) value[name] = inner
}

function restoreItems(items: unknown, restored: unknown, key: string, rest: readonly string[]): void {
  if (!Array.isArray(items)) return
  const others = Array.isArray(restored) ? (restored as Struct[]) : []
  ;(items as Struct[]).forEach((item, index) => {
    const byIndex = others.length === items.length ? others[index] : undefined
    restoreAt(item, (key === '' ? byIndex : others.find((other) => other[key] === item[key])) ?? {}, rest)
  })
}

function restoreField(value: Struct, restored: Struct, name: string): void {
  if (value[name]) return
  if (restored[name] === false || restored[name] === 0) value[name] = restored[name]
  else delete value[name]
}

const schemaBooleans = [
  'uniqueItems',
  'exclusiveMaximum',
  'exclusiveMinimum',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-int-or-string',
]

/** Restores booleans of a schema and of all schemas in it. Upstream: restoreBoolIntentJSONSchemaProps. */
function restoreSchema(schema: Struct, restored: Struct): void {
  for (const name of schemaBooleans) restoreField(schema, restored, name)
  const restoreNested = (value: unknown, other: unknown) => {
    if (isRecord(value)) restoreSchema(value, isRecord(other) ? other : {})
  }
  for (const name of ['additionalProperties', 'items', 'not']) restoreNested(schema[name], restored[name])
  const known = isRecord(restored.properties) ? restored.properties : {}
  for (const [name, property] of Object.entries(isRecord(schema.properties) ? schema.properties : {}))
    restoreNested(property, known[name])
  for (const name of ['allOf', 'oneOf', 'anyOf']) {
    const others = Array.isArray(restored[name]) ? restored[name] : []
    if (Array.isArray(schema[name])) schema[name].forEach((nested, index) => restoreNested(nested, others[index]))
  }
}

/** Copies the value at a path from the restored v1beta2 object, regardless of the older version's value. */
export function copyRestored(value: Struct, restored: Struct, path: string): void {
  const names = path.split('.')
  const last = names.pop()!
  let from: unknown = restored
  let to = value
  for (const name of names) {
    from = isRecord(from) ? from[name] : undefined
    to = (isRecord(to[name]) ? to[name] : (to[name] = {})) as Struct
  }
  const restoredValue = isRecord(from) ? from[last] : undefined
  if (restoredValue === undefined) delete to[last]
  else to[last] = restoredValue
}
