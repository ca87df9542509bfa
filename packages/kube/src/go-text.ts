import { isRecord } from './json.ts'

/** A JSON value as Go's `%v` prints it, for messages that carry values so: `map[a:1 b:[x y]]`. */
export function goText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(goText).join(' ')}]`
  if (isRecord(value)) {
    const members = Object.keys(value).sort()
    return `map[${members.map((key) => `${key}:${goText(value[key])}`).join(' ')}]`
  }
  return typeof value === 'string' ? value : value === null || value === undefined ? '<nil>' : JSON.stringify(value)
}
