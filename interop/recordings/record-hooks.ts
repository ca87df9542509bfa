/**
 * Records the paths and schemas of upstream's OpenAPI document of the hooks, each on one line. Omits descriptions, defaults, and members whose
 * names begin with `x-`.
 *
 * Usage: `node interop/recordings/record-hooks.ts`.
 */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isRecord } from '@capstan/kube'
import { output, toolPaths } from '../shared/tools.ts'

/** File of the recorded document. */
export const recording = fileURLToPath(new URL('../../packages/api/testdata/hooks-openapi.json', import.meta.url))

/** Returns upstream's OpenAPI document in the form in which it is recorded. */
export function recordedForm(text: string): string {
  const { paths, components } = JSON.parse(text) as { paths: object; components: { schemas: object } }
  const lines = (section: object) =>
    Object.entries(section)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(structure(value))}`)
      .join(',\n')
  return `{"paths":{\n${lines(paths)}\n},"components":{"schemas":{\n${lines(components.schemas)}\n}}}\n`
}

/**
 * Removes descriptions, defaults, and members whose names begin with `x-`, and sorts the other members by name. With `isFields`, `value` is the map `properties` of a schema: its
 * keys are names of fields, such as `description`, and are kept.
 */
function structure(value: unknown, isFields = false): unknown {
  if (Array.isArray(value)) return value.map((item) => structure(item))
  if (!isRecord(value)) return value
  const keys = Object.keys(value)
    .sort()
    .filter((key) => isFields || (key !== 'description' && key !== 'default' && !key.startsWith('x-')))
  return Object.fromEntries(keys.map((key) => [key, structure(value[key], key === 'properties' && !isFields)]))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [peer] = await toolPaths('hooks-peer')
  writeFileSync(recording, recordedForm(await output(peer, ['openapi'], { cwd: '.' })))
}
