/** Sprig's functions on JSON. Upstream: Go's encoding/json. */
import type { GoMap, TemplateFunction, Value } from '../value.ts'
import { floatText } from '../format.ts'
import { goFunction, GoStruct, isMap, mapOf, sortedKeys } from '../value.ts'

const parsed = (text: string): Value => JSON.parse(text) as Value

export const jsonFunctions: Readonly<Record<string, TemplateFunction>> = {
  fromJson: goFunction(['string'], (text) => {
    try {
      return parsed(text)
    } catch {
      return null
    }
  }),
  mustFromJson: goFunction(['string'], parsed),
  toJson: goFunction(['any'], (value) => escaped(JSON.stringify(plain(value)))),
  mustToJson: goFunction(['any'], (value) => escaped(JSON.stringify(plain(value)))),
  toRawJson: goFunction(['any'], (value) => JSON.stringify(plain(value))),
  mustToRawJson: goFunction(['any'], (value) => JSON.stringify(plain(value))),
  toPrettyJson: goFunction(['any'], (value) => escaped(JSON.stringify(plain(value), null, 2))),
  mustToPrettyJson: goFunction(['any'], (value) => escaped(JSON.stringify(plain(value), null, 2))),
}

// Missing in the types of the standard library.
const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown }

const escaped = (json: string): string =>
  json.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Returns the value with sorted keys and numbers in Go's format. */
function plain(value: Value): unknown {
  if (value === undefined) return null
  if (typeof value === 'bigint') return rawJSON(String(value))
  if (typeof value === 'number') return Number.isFinite(value) ? value : notJson(value)
  if (Array.isArray(value)) return value.map(plain)
  if (value instanceof GoStruct) return value.text
  if (value !== null && isMap(value)) return sorted(value)
  return value
}

const sorted = (map: GoMap): unknown => mapOf(sortedKeys(map).map((key) => [key, plain(map[key]) as Value]))

function notJson(value: number): never {
  throw new Error(`json: unsupported value: ${floatText(value)}`)
}
