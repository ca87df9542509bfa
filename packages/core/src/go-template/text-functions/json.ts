/** Sprig's functions on JSON. Upstream: Go's encoding/json. */
import type { TemplateFunction, Value } from '../value.ts'
import { floatText } from '../format.ts'
import { goFunction, GoStruct, isMap, sortedKeys } from '../value.ts'

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
  toJson: goFunction(['any'], (value) => textOrNone(() => escapeHtml(jsonOf(value)))),
  mustToJson: goFunction(['any'], (value) => escapeHtml(jsonOf(value))),
  toRawJson: goFunction(['any'], (value) => jsonOf(value)),
  mustToRawJson: goFunction(['any'], (value) => jsonOf(value)),
  toPrettyJson: goFunction(['any'], (value) => textOrNone(() => escapeHtml(jsonOf(value, '  ')))),
  mustToPrettyJson: goFunction(['any'], (value) => escapeHtml(jsonOf(value, '  '))),
}

/** As sprig, returns no text for a value that JSON does not have, such as NaN. `toRawJson` and the functions with `must` fail instead. */
function textOrNone(jsonText: () => string): string {
  try {
    return jsonText()
  } catch {
    return ''
  }
}

const escapeHtml = (json: string): string => json.replace(/[<>&]/g, escaped)

const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * Returns the JSON of a template value as Go formats it: sorted keys, exact integers. `JSON.stringify` would put keys like "9" first,
 * ordered by number. `indentation` is added at each level; without it the JSON is one line. `outer` is the indentation of the value itself.
 */
function jsonOf(value: Value, indentation = '', outer = ''): string {
  if (value === undefined || value === null) return 'null'
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number') return Number.isFinite(value) ? numberText(value) : notJson(value)
  const inner = outer + indentation
  const list = (open: string, items: readonly string[], close: string): string => {
    if (items.length === 0) return open + close
    if (indentation === '') return open + items.join(',') + close
    return `${open}\n${inner}${items.join(`,\n${inner}`)}\n${outer}${close}`
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => jsonOf(item, indentation, inner))
    return list('[', items, ']')
  }
  if (value instanceof GoStruct) return stringText(value.text)
  if (!isMap(value)) return typeof value === 'string' ? stringText(value) : JSON.stringify(value)
  const separator = indentation === '' ? ':' : ': '
  const members = sortedKeys(value).map((key) => stringText(key) + separator + jsonOf(value[key], indentation, inner))
  return list('{', members, '}')
}

/** Encodes a string. Escapes U+2028 and U+2029, as Go does also where it does not escape HTML. */
const stringText = (value: string): string => JSON.stringify(value).replace(/[\u2028\u2029]/g, escaped)

const numberText = (value: number): string => (Object.is(value, -0) ? '-0' : JSON.stringify(value))

function notJson(value: number): never {
  throw new Error(`json: unsupported value: ${floatText(value)}`)
}
