/**
 * `node scripts/tools/protobuf-messages.ts` reads the Go types of the built-in kinds from their published modules, and writes the protobuf
 * number, the name and the type of each field to `packages/kubernetes-kinds/src/protobuf-messages.ts`. Needs Go.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseApiVersion } from '@capstan/kube'
import type { ResourceRecord } from '../../packages/kubernetes-kinds/src/kinds/catalog.ts'

const version = 'v0.36.2'

type Records = { readonly [groupVersion: string]: { readonly [plural: string]: ResourceRecord } }
const resources = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../packages/kubernetes-kinds/src/kinds/schemas/resources.json'), 'utf8'),
) as Records

/** Returns the Go package of a group version: `core/v1` for `v1`, `rbac/v1` for `rbac.authorization.k8s.io/v1`. */
const packageOf = (groupVersion: string): string => {
  const { group, version } = parseApiVersion(groupVersion)
  return `${group === '' ? 'core' : group.split('.')[0]!}/${version}`
}
const served = Object.keys(resources)

/** Kinds that clients send, as `<Go package>.<kind>`. */
const roots = new Set([
  ...served.flatMap((groupVersion) =>
    Object.values(resources[groupVersion]!).map(({ kind }) => `${packageOf(groupVersion)}.${kind}`),
  ),
  'autoscaling/v1.Scale',
  'authentication/v1.TokenRequest',
  'meta/v1.DeleteOptions',
  'policy/v1.Eviction',
])

/** Go packages that are not in `k8s.io/api`, but in the module of the server that serves their kinds. */
const modules: { readonly [name: string]: { readonly module: string; readonly path: string } } = {
  'apiextensions/v1': { module: 'k8s.io/apiextensions-apiserver', path: 'pkg/apis/apiextensions/v1' },
  'apiregistration/v1': { module: 'k8s.io/kube-aggregator', path: 'pkg/apis/apiregistration/v1' },
}
const packages = new Map(served.map(packageOf).map((name) => [name, modules[name] ?? { module: 'k8s.io/api', path: name }]))
packages.set('meta/v1', { module: 'k8s.io/apimachinery', path: 'pkg/apis/meta/v1' })
/** Names under which Go files import other packages, with the package. */
const aliases: { readonly [alias: string]: string } = { metav1: 'meta/v1', apiv1: 'core/v1', v1: 'core/v1', corev1: 'core/v1' }

/** Types with a special wire format, and types of packages that are not read, with their names in the generated table. */
const special: { readonly [type: string]: string } = {
  'meta/v1.Time': 'Time',
  'meta/v1.MicroTime': 'MicroTime',
  'meta/v1.FieldsV1': 'JSON',
  'resource.Quantity': 'Quantity',
  'intstr.IntOrString': 'IntOrString',
  'runtime.RawExtension': 'JSON',
  'types.UID': 'string',
  'apiextensions/v1.JSON': 'JSON',
  'apiextensions/v1.JSONSchemaPropsOrArray': 'SchemaOrSchemas',
  'apiextensions/v1.JSONSchemaPropsOrBool': 'SchemaOrBool',
  'apiextensions/v1.JSONSchemaPropsOrStringArray': 'SchemaOrStrings',
}
/** Scalar types of Go, with their names in the generated table. */
const scalars: { readonly [type: string]: string } = {
  string: 'string',
  int32: 'int',
  int64: 'int',
  int: 'int',
  uint8: 'int',
  bool: 'bool',
  float64: 'double',
}

interface Field {
  readonly number: string
  readonly name: string
  readonly type: string
  readonly isPointer: boolean
  readonly omitEmpty: boolean
}

const directory = (module: string): string =>
  (JSON.parse(execFileSync('go', ['mod', 'download', '-json', `${module}@${version}`], { encoding: 'utf8' })) as { Dir: string })
    .Dir

const structs = new Map<string, Field[]>()
const namedTypes = new Map<string, string>()
for (const [name, { module, path }] of packages) {
  const folder = join(directory(module), path)
  for (const file of readdirSync(folder).filter((file) => /^types(_\w+)?\.go$/.test(file)))
    read(name, readFileSync(join(folder, file), 'utf8'))
}

/** Records the named types and structs of a Go file in `namedTypes` and `structs`. `from` is the package of the file. */
function read(from: string, source: string): void {
  for (const [, name, type] of source.matchAll(/^type (\w+) ((?:map\[|\[\])?[\w.\]]+)$/gm))
    namedTypes.set(`${from}.${name}`, qualified(type!, from))
  for (const [, name, body] of source.matchAll(/^type (\w+) struct ?\{(?:\n(.*?)^)?\}/gms)) {
    const fields: Field[] = []
    for (const [, goName, goType, tags] of (body ?? '').matchAll(/^\t(\w[\w.]*)(?:\s+([^\s`]+))?\s+`(.*)`/gm)) {
      const number = /protobuf:"\w+,(\d+)/.exec(tags!)?.[1]
      const [jsonName = '', ...flags] = (/json:"([^"]*)"/.exec(tags!)?.[1] ?? '').split(',')
      if (number === undefined) continue
      const type = goType ?? goName!
      fields.push({
        number,
        name: flags.includes('inline') ? '' : jsonName,
        type: qualified(type.replace(/^\*/, ''), from),
        isPointer: type.startsWith('*'),
        omitEmpty: flags.includes('omitempty'),
      })
    }
    structs.set(`${from}.${name}`, fields)
  }
}

/**
 * Returns a Go type with its package, such as `core/v1.Pod`. A list is `[]` and the type of its elements, a map `{}` and the type of its
 * values. Scalar types have no package, and `[]byte` is `bytes`.
 */
function qualified(type: string, from: string): string {
  const map = /^map\[.*?\](.*)$/.exec(type)
  if (map) return `{}${qualified(map[1]!, from)}`
  if (type === '[]byte') return 'bytes'
  if (type.startsWith('[]')) return `[]${qualified(type.slice(2).replace(/^\*/, ''), from)}`
  const [alias, name] = type.includes('.') ? type.split('.') : [undefined, type]
  if (alias !== undefined) return `${aliases[alias] ?? alias}.${name}`
  return type in scalars ? type : `${from}.${type}`
}

/** Returns the name of a type in the generated table. If the type is a message, adds it to `pendingMessages`. */
function tableType(type: string, pendingMessages: string[]): string {
  if (type.startsWith('{}') || type.startsWith('[]')) return type.slice(0, 2) + tableType(type.slice(2), pendingMessages)
  if (type === 'bytes') return type
  const scalarOrSpecial = special[type] ?? scalars[type]
  if (scalarOrSpecial) return scalarOrSpecial
  const underlying = namedTypes.get(type)
  if (underlying !== undefined) return tableType(underlying, pendingMessages)
  if (!structs.has(type)) throw new Error(`unknown type ${type}`)
  pendingMessages.push(type)
  return type
}

const table = new Map<string, string>()
const pendingMessages = [...roots]
for (let message = pendingMessages.pop(); message !== undefined; message = pendingMessages.pop()) {
  if (table.has(message)) continue
  const fields = structs.get(message)
  if (!fields) throw new Error(`no struct ${message}`)
  const cells = fields
    .map((field) => ({ ...field, type: tableType(field.type, pendingMessages) }))
    .sort((a, b) => Number(a.number) - Number(b.number))
    .map(
      ({ number, name, type, isPointer, omitEmpty }) =>
        `${number} ${name || '.'} ${type}${isPointer && !omitEmpty ? ' !!' : isPointer || !omitEmpty ? ' !' : ''}`,
    )
  table.set(message, cells.join(', '))
}

const rows = [...table]
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([message, fields]) => `  ${JSON.stringify(message)}: ${JSON.stringify(fields)},`)
const out = join(import.meta.dirname, '../../packages/kubernetes-kinds/src/protobuf-messages.ts')
writeFileSync(
  out,
  `/**
 * Generated by scripts/tools/protobuf-messages.ts from the published Go types of the built-in kinds, ${version}. A field is its protobuf
 * number, its name in JSON (\`.\` for an embedded message, whose fields belong to the outer message) and its type: \`[]T\` is a list, \`{}T\` a
 * map with values of type T. \`!\` follows if the field is a pointer or has no omitempty: then JSON contains its zero value. \`!!\` follows
 * instead if it is a pointer without omitempty: then JSON also contains null when the field is absent.
 */
export const messages: { readonly [message: string]: string } = {
${rows.join('\n')}
}
`,
)
process.stderr.write(`${table.size} messages\n`)
