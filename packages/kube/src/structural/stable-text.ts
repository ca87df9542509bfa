import { writeJSON } from '../json-text.ts'
import { isRecord } from '../json.ts'

/** JSON with sorted members: equal values have equal texts. */
export function stableText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stableText).join(',')}]`
  if (!isRecord(value)) return writeJSON(value) ?? 'null'
  let members = ''
  for (const key of Object.keys(value).sort()) {
    if (value[key] === undefined) continue
    members += `${members === '' ? '' : ','}${JSON.stringify(key)}:${stableText(value[key])}`
  }
  return `{${members}}`
}
