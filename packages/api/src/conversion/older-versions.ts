/** Declares the older API versions of a kind, which the server converts to and from v1beta2. */
import {
  type Column,
  type DeclaredKind,
  freeze,
  type JSONSchema,
  type KindVersion,
  type KubeObject,
  type ScaleSubresource,
} from '@capstan/kube'
import { pluralOf } from '../contract/plural.ts'
import { type Conversion, fromStored, type KindRule, toStored } from './convert.ts'
import { baseSchema, elementOf, structOf } from './go-schema.ts'
import { fieldsOf, type GoField } from './go-types.ts'
import { kindRules } from './kind-rules.ts'
import { referencesOf } from './references.ts'
import { recordedVersions } from './recorded-types.ts'

/** An API version of a kind, as recorded from upstream. */
interface Recorded {
  readonly group: string
  readonly version: string
  readonly kind: string
  /** Name of the Go type. */
  readonly type: string
  /** Facts about the version from upstream's CustomResourceDefinition; absent for v1beta2. */
  readonly facts?: {
    readonly deprecated?: true
    readonly status?: object
    readonly scale?: ScaleSubresource
    readonly columns: readonly Column[]
  }
}

const recorded: readonly Recorded[] = recordedVersions
  .trim()
  .split('\n')
  .map((line) => {
    const [apiVersion = '', kind = '', type = ''] = line.split(' ', 3)
    const facts = line.slice(apiVersion.length + kind.length + type.length + 3)
    const [group = '', version = ''] = apiVersion.split('/')
    return { group, version, kind, type, ...(facts === '' ? {} : { facts: JSON.parse(facts) as Recorded['facts'] & object }) }
  })

export const StoredVersion = 'v1beta2'

/** Returns all versions of the kind except v1beta2, oldest first. */
export function olderVersions(group: string, kind: string, scope: DeclaredKind['scope'] = 'Namespaced'): KindVersion[] {
  const allVersions = recorded.filter((version) => version.group === group && version.kind === kind)
  const stored = allVersions.find(({ version }) => version === StoredVersion)
  if (!stored) throw new TypeError(`no recorded versions of ${kind}.${group}`)
  return allVersions.filter((version) => version !== stored).map((version) => kindVersion(version, stored.type, scope))
}

function kindVersion({ group, version, kind, type, facts }: Recorded, stored: string, scope: DeclaredKind['scope']): KindVersion {
  const rule: KindRule = kindRules[`${kind} ${version}`] ?? {}
  const conversion: Conversion = { older: type, stored, storedVersion: `${group}/${StoredVersion}`, rule }
  let schema: JSONSchema | undefined
  const declared: DeclaredKind = {
    group,
    version,
    kind,
    plural: pluralOf(kind),
    singular: kind.toLowerCase(),
    listKind: `${kind}List`,
    shortNames: [],
    categories: [],
    scope,
    doc: '',
    get schema() {
      return (schema ??= freeze(structSchema(type)))
    },
    statusSubresource: facts?.status !== undefined,
    scale: facts?.scale,
    columns: facts?.columns ?? [],
    labels: {},
    versions: [],
  }
  return {
    kind: declared,
    deprecated: facts?.deprecated ?? false,
    references: (object) => referencesOf(object),
    toStored: (object: KubeObject) => toStored(conversion, object),
    fromStored: (object: KubeObject, { apiVersionOf }) => fromStored(conversion, object, apiVersionOf),
  }
}

function structSchema(type: string, keywords: JSONSchema = {}): JSONSchema {
  const fields = fieldsOf(type)
  const required = fields.filter((field) => field.required).map(({ name }) => name)
  return {
    type: 'object',
    ...keywords,
    properties: Object.fromEntries(fields.map((field) => [field.name, fieldSchema(field)])),
    ...(required.length > 0 ? { required } : {}),
  }
}

const fieldSchema = ({ type, schema, keywords = {} }: GoField): JSONSchema => schema ?? typeSchema(type, keywords)

/** Returns the schema of a Go type. `elementKeywords` are for the items of a list, or the values of a map. */
function typeSchema(type: string, { '[]': elementKeywords = {}, ...keywords }: JSONSchema & { '[]'?: JSONSchema }): JSONSchema {
  const element = elementOf(type)
  if (element !== undefined) {
    const inner = typeSchema(element, elementKeywords)
    return {
      ...baseSchema(type),
      ...keywords,
      ...(type.replace(/^\*/, '').startsWith('[]') ? { items: inner } : { additionalProperties: inner }),
    }
  }
  const struct = structOf(type)
  return struct === undefined || struct === 'metadata' ? { ...baseSchema(type), ...keywords } : structSchema(struct, keywords)
}
