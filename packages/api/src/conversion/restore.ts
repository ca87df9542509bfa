/**
 * Restores values that an older version cannot represent, such as an explicit `false` or `0` in a field in which the older version does not
 * distinguish it from an absent value. The values come from the annotation `cluster.x-k8s.io/conversion-data` of the older version, which
 * contains the v1beta2 object without its metadata.
 */
import { isRecord } from '@capstan/kube'
import type { Struct } from './go-types.ts'

/**
 * Sets each boolean or number at `path` to `false` or `0` if `restored`, the object of the annotation, has this value there, unless `value`
 * has a non-zero value there. Removes a zero that `restored` does not have. In a path, `list[KEY]` means that items of both lists correspond
 * by the field KEY; `list[]`, that they correspond by index, but only if the lists have equal lengths. `{schema}` stands for the
 * `schemaBooleans` of a schema and of all schemas in it.
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
  const restoredItems = Array.isArray(restored) ? (restored as Struct[]) : []
  ;(items as Struct[]).forEach((item, index) => {
    const byIndex = restoredItems.length === items.length ? restoredItems[index] : undefined
    restoreAt(item, (key === '' ? byIndex : restoredItems.find((candidate) => candidate[key] === item[key])) ?? {}, rest)
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
  const restoreNested = (value: unknown, restoredValue: unknown) => {
    if (isRecord(value)) restoreSchema(value, isRecord(restoredValue) ? restoredValue : {})
  }
  for (const name of ['additionalProperties', 'items', 'not']) restoreNested(schema[name], restored[name])
  const restoredProperties = isRecord(restored.properties) ? restored.properties : {}
  for (const [name, property] of Object.entries(isRecord(schema.properties) ? schema.properties : {}))
    restoreNested(property, restoredProperties[name])
  for (const name of ['allOf', 'oneOf', 'anyOf']) {
    const restoredSchemas = Array.isArray(restored[name]) ? restored[name] : []
    if (Array.isArray(schema[name])) schema[name].forEach((nested, index) => restoreNested(nested, restoredSchemas[index]))
  }
}

/**
 * Copies the value at a path from `restored`, the object of the annotation, regardless of the older version's value. Deletes the value if
 * `restored` has none.
 */
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
