/** Sprig's functions on JSON. Upstream: Go's encoding/json. */
import type { GoMap, TemplateFunction, Value } from '../value.ts'
import { floatText } from '../format.ts'
import { goFunction, GoStruct, isMap, mapOf, sortedKeys } from '../value.ts'

const parseJson = (text: string): Value => JSON.parse(text) as Value

export const jsonFunctions: Readonly<Record<string, TemplateFunction>> = {
  fromJson: goFunction(['string'], (text) => {
    try {
      return parseJson(text)
    } catch {
      return null
    }
  }),
  mustFromJson: goFunction(['string'], parseJson),
  toJson: goFunction(['any'], (value) => escapeHtml(JSON.stringify(toJsonValue(value)))),
  mustToJson: goFunction(['any'], (value) => escapeHtml(JSON.stringify(toJsonValue(value)))),
  toRawJson: goFunction(['any'], (value) => JSON.stringify(toJsonValue(value))),
  mustToRawJson: goFunction(['any'], (value) => JSON.stringify(toJsonValue(value))),
  toPrettyJson: goFunction(['any'], (value) => escapeHtml(JSON.stringify(toJsonValue(value), null, 2))),
  mustToPrettyJson: goFunction(['any'], (value) => escapeHtml(JSON.stringify(toJsonValue(value), null, 2))),
}

// `JSON.rawJSON` is missing in the types of the standard library.
const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown }

const escapeHtml = (json: string): string =>
  json.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Converts a template value to a value that JSON.stringify formats as Go does: with sorted keys and exact integers. */
function toJsonValue(value: Value): unknown {
  if (value === undefined) return null
  if (typeof value === 'bigint') return rawJSON(String(value))
  if (typeof value === 'number') return Number.isFinite(value) ? value : notJson(value)
  if (Array.isArray(value)) return value.map(toJsonValue)
  if (value instanceof GoStruct) return value.text
  if (value !== null && isMap(value)) return withSortedKeys(value)
  return value
}

const withSortedKeys = (map: GoMap): unknown => mapOf(sortedKeys(map).map((key) => [key, toJsonValue(map[key]) as Value]))

function notJson(value: number): never {
  throw new Error(`json: unsupported value: ${floatText(value)}`)
}
