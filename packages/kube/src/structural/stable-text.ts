import { after, asWork, each, type RemainingWork, sorting, type Work } from '../clock.ts'
import { writeJSON } from '../json-text.ts'
import { isRecord } from '../json.ts'

/** Formats a value as JSON with members sorted by name, so that equal values have equal texts. */
export function stableText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stableText).join(',')}]`
  if (!isRecord(value)) return writeJSON(value) ?? 'null'
  const members = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${stableText(value[key])}`)
  return `{${members.join(',')}}`
}

/** Returns work that formats a value as `stableText` does, and yields between its pieces. */
export const writingStableText = (value: unknown): Work<string> => writing(value, (keys) => sorting(keys))

/** Returns work that formats a value as `writeJSON` does, and yields between its pieces. */
export const writingJSON = (value: unknown): Work<string> => writing(value)

/** Number of parts that are joined into a chunk. */
const ChunkSize = 1024

function writing(value: unknown, order?: (keys: string[]) => Work<string[]>): Work<string> {
  // Parts are joined into chunks early, because joining a million parts at the end would block the event loop.
  const chunks: string[] = []
  let parts: string[] = []
  const add = (part: string): undefined => {
    if (parts.push(part) < ChunkSize) return
    chunks.push(parts.join(''))
    parts = []
  }
  const write = (part: unknown): RemainingWork => {
    if (Array.isArray(part)) {
      let before = '['
      const items = each(part, (item) => {
        add(before)
        before = ','
        return write(item)
      })
      return after(items, () => add(part.length === 0 ? '[]' : ']'))
    }
    if (!isRecord(part)) return add(writeJSON(part) ?? 'null')
    const keys = Object.keys(part).filter((key) => part[key] !== undefined)
    const members = (ordered: readonly string[]): RemainingWork => {
      let before = '{'
      const written = each(ordered, (key) => {
        add(`${before}${JSON.stringify(key)}:`)
        before = ','
        return write(part[key])
      })
      return after(written, () => add(keys.length === 0 ? '{}' : '}'))
    }
    return order ? ordering(order(keys), members) : members(keys)
  }
  return asWork(
    () => write(value),
    () => [...chunks, ...parts].join(''),
  )
}

function* ordering(work: Work<string[]>, act: (keys: readonly string[]) => RemainingWork): Work<void> {
  const rest = act(yield* work)
  if (rest) yield* rest
}
