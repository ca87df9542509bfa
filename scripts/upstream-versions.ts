/**
 * Writes the Go types of upstream's API versions, and the schemas of the older versions, to
 * `packages/api/src/conversion/recorded-types.ts`. Needs Go: it builds the program conversion-peer. Run: node scripts/upstream-versions.ts
 */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Column, equal, type JSONSchema } from '@capstan/kube'
import { parse } from 'yaml'
import { moduleFolder, output, toolPaths } from '../interop/shared/tools.ts'
import { baseSchema, elementOf, structOf } from '../packages/api/src/conversion/go-schema.ts'

interface Types {
  readonly roots: { readonly [apiVersionAndKind: string]: string }
  /** Fields as `name type omit`, as conversion-peer prints them. */
  readonly structs: { readonly [struct: string]: readonly string[] }
}

interface Version {
  readonly name: string
  readonly storage: boolean
  readonly deprecated?: boolean
  readonly schema: { readonly openAPIV3Schema: JSONSchema }
  readonly subresources?: { readonly status?: object; readonly scale?: object }
  readonly additionalPrinterColumns: readonly Column[]
}

const [peer] = await toolPaths('conversion-peer')
const types = JSON.parse(await output(peer, ['types'], { cwd: '.' })) as Types
const bases = join(await moduleFolder('conversion-peer', 'sigs.k8s.io/cluster-api'), 'core/config/crd/bases')

/** For each `struct.field`: `r` if the field is required, and the text that `keywordsText` returns, if any, after a space. */
const facts = new Map<string, string>()

/** Adds the fields of a struct to `facts`. @throws Error if a field has no schema, or another schema in another place */
function record(struct: string, schema: JSONSchema): void {
  for (const line of types.structs[struct]!) {
    const [name, type] = line.split(' ') as [string, string]
    const field = schema.properties?.[name]
    if (!field) throw new Error(`${struct}.${name}: not in the CustomResourceDefinition`)
    const required = schema.required?.includes(name) ? 'r' : ''
    const text = `${required} ${keywordsText(type, field)}`.trimEnd()
    const recordedText = facts.get(`${struct}.${name}`)
    if (recordedText !== undefined && recordedText !== text)
      throw new Error(`${struct}.${name} has different schemas in two places: ${recordedText} | ${text}`)
    facts.set(`${struct}.${name}`, text)
  }
}

/**
 * Returns the schema keywords that do not follow from the Go type, as JSON. Keywords of the items of a list, and of the values of a map, are
 * under `[]`. Without such keywords, returns an empty text. If the schema contradicts the type, returns `=` and the schema without
 * descriptions.
 */
function keywordsText(type: string, schema: JSONSchema): string {
  const keywords = extraKeywords(type, schema)
  if (keywords === undefined) return `=${JSON.stringify(withoutDescriptions(schema))}`
  return Object.keys(keywords).length === 0 ? '' : JSON.stringify(keywords)
}

/**
 * Returns the schema keywords that do not follow from the Go type; `undefined` if the schema contradicts the type. Also adds the fields of
 * the type's struct to `facts`.
 */
function extraKeywords(type: string, schema: JSONSchema): object | undefined {
  const { description: _, properties: _p, items, additionalProperties, required: _r, ...keywords } = schema
  const base = baseSchema(type) as { [keyword: string]: unknown }
  const result: { [keyword: string]: unknown } = {}
  for (const keyword of Object.keys(base)) {
    if (!equal(base[keyword], (keywords as typeof base)[keyword])) return undefined
  }
  for (const [keyword, value] of Object.entries(keywords)) if (!(keyword in base)) result[keyword] = value
  const element = elementOf(type)
  if (element !== undefined) {
    const inner = extraKeywords(element, (items ?? additionalProperties) as JSONSchema)
    if (inner === undefined) return undefined
    if (Object.keys(inner).length > 0) result['[]'] = inner
  }
  const struct = structOf(type)
  if (struct !== undefined && element === undefined && struct !== 'metadata') {
    if (!schema.properties) return undefined
    record(struct, schema)
  }
  return result
}

function withoutDescriptions(schema: JSONSchema): JSONSchema {
  const { description: _, properties, items, ...rest } = schema
  return {
    ...rest,
    ...(properties
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, property]) => [name, withoutDescriptions(property)]),
          ),
        }
      : {}),
    ...(items ? { items: withoutDescriptions(items) } : {}),
  }
}

const served: string[] = []
for (const file of readdirSync(bases).sort()) {
  const { spec } = parse(readFileSync(join(bases, file), 'utf8')) as {
    spec: { group: string; names: { kind: string }; versions: Version[] }
  }
  for (const { name, storage, deprecated, schema, subresources, additionalPrinterColumns } of spec.versions) {
    const root = types.roots[`${spec.group}/${name} ${spec.names.kind}`]!
    if (storage) continue
    record(root, schema.openAPIV3Schema)
    const columns = additionalPrinterColumns.map(({ description: _description, ...column }) => column)
    const versionFacts = { ...(deprecated ? { deprecated } : {}), ...subresources, columns }
    served.push(`${spec.group}/${name} ${spec.names.kind} ${root} ${JSON.stringify(versionFacts)}`)
  }
}
for (const [root, struct] of Object.entries(types.roots).sort(([a], [b]) => (a < b ? -1 : 1)))
  if (root.includes('/v1beta2 ')) served.push(`${root} ${struct}`)

const structs = Object.entries(types.structs)
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([struct, fields]) => {
    const lines = fields.map((line) => {
      const [name, type, omit = ''] = line.split(' ') as [string, string, string?]
      const [required = '', ...rest] = (facts.get(`${struct}.${name}`) ?? '').split(' ')
      const flags = omit + required
      return `  ${[name, type, flags === '' ? '-' : flags, ...rest].join(' ')}`
    })
    return [struct, ...lines].join('\n')
  })

/** Escapes a text for a template literal. */
const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${')
writeFileSync(
  new URL('../packages/api/src/conversion/recorded-types.ts', import.meta.url),
  `/** Generated by scripts/upstream-versions.ts from the Go types and CustomResourceDefinitions of Cluster API v1.14.0. */

/**
 * A line for each version of a kind: its apiVersion, kind and Go type. For versions before v1beta2, the line ends with parts of the version in
 * the CustomResourceDefinition: whether it is deprecated, its subresources \`status\` and \`scale\`, and its columns.
 */
export const recordedVersions = \`
${escaped(served.join('\n'))}
\`

/**
 * Go types. The line of a field has its name in JSON; its type, in which \`*\` is a pointer, \`[]\` a list and \`{}\` a map with string keys; and
 * the letters \`e\` (omitempty), \`z\` (omitzero) and \`r\` (required by the schema), or \`-\` without these. The line may end with the keywords
 * of the schema that do not follow from the type; those of list items and map values are under \`[]\`. If the schema contradicts the type,
 * the line ends with \`=\` and the whole schema without descriptions. Types that only v1beta2 uses have no \`r\` and no keywords.
 */
export const recordedTypes = \`
${escaped(structs.join('\n'))}
\`
`,
)
