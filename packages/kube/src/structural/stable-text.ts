import { writeJSON } from '../json-text.ts'
import { isRecord } from '../json.ts'

/** JSON with sorted members: equal values have equal texts. */
export function stableText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stableText).join(',')}]`
  if (!isRecord(value)) return writeJSON(value) ?? 'null'
  const members = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${stableText(value[key])}`)
  return `{${members.join(',')}}`
}
