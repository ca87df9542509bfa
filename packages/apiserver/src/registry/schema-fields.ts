/**
 * Fields of schemas in CustomResourceDefinitions. No schema describes them, because they are recursive: unknown fields are pruned, and
 * fields that Go omits when empty are omitted. Upstream: JSONSchemaProps of k8s.io/apiextensions-apiserver, v0.36.
 */
import { isRecord } from '@capstan/kube'

type Fields = { readonly [field: string]: Value }
type Value =
  /** Kept unchanged. */
  | 'any'
  /** A string, a list or a map that is omitted when empty. */
  | 'unless empty'
  | 'unless false'
  | 'schema'
  /** Upstream decodes these separately, and does not report the fields that it prunes there. */
  | 'quiet schema'
  | 'map of schemas'
  | 'list of schemas'
  | { readonly fields: Fields; readonly isList: boolean }

const schemaFields: Fields = {
  ...every(
    'any',
    '$ref default maximum minimum maxLength minLength maxItems minItems multipleOf maxProperties minProperties example',
  ),
  ...every('any', 'x-kubernetes-preserve-unknown-fields x-kubernetes-list-type x-kubernetes-map-type'),
  ...every('unless empty', 'id $schema description type format title pattern enum required x-kubernetes-list-map-keys'),
  ...every('unless false', 'exclusiveMaximum exclusiveMinimum uniqueItems nullable'),
  ...every('unless false', 'x-kubernetes-embedded-resource x-kubernetes-int-or-string'),
  ...every('list of schemas', 'allOf oneOf anyOf'),
  ...every('map of schemas', 'properties patternProperties definitions'),
  ...every('quiet schema', 'items additionalProperties additionalItems'),
  not: 'schema',
  dependencies: 'unless empty',
  externalDocs: { fields: every('unless empty', 'description url'), isList: false },
  'x-kubernetes-validations': {
    fields: { ...every('any', 'rule reason optionalOldSelf'), ...every('unless empty', 'message messageExpression fieldPath') },
    isList: true,
  },
}

function every(value: Value, fields: string): Fields {
  return Object.fromEntries(fields.split(' ').map((field) => [field, value]))
}

/**
 * Normalizes a draft of a schema in place.
 * @param report called with the path of every unknown field
 */
export function normalizeSchema(schema: unknown, path: string, report: (path: string) => void): void {
  normalize(schema, schemaFields, path, report)
}

function normalize(value: unknown, fields: Fields, path: string, report: (path: string) => void): void {
  if (!isRecord(value)) return
  for (const [field, member] of Object.entries(value)) {
    const at = `${path}.${field}`
    const known = Object.hasOwn(fields, field) ? fields[field]! : undefined
    if (known === undefined) {
      report(at)
      delete value[field]
    } else if (known === 'unless false') {
      if (member === false) delete value[field]
    } else if (known === 'schema') normalizeSchema(member, at, report)
    else if (known === 'quiet schema')
      for (const one of Array.isArray(member) ? member : [member]) normalizeSchema(one, at, () => {})
    else if (known !== 'any') {
      const isEmpty = member === '' || (typeof member === 'object' && member !== null && Object.keys(member).length === 0)
      // A value that is not a list is a pointer to a struct in Go, which is kept when empty.
      if (isEmpty && !(typeof known === 'object' && !known.isList)) delete value[field]
      else if (known === 'map of schemas' && isRecord(member))
        for (const [name, one] of Object.entries(member)) normalizeSchema(one, `${at}.${name}`, report)
      else if (known === 'list of schemas' && Array.isArray(member))
        for (const [index, one] of member.entries()) normalizeSchema(one, `${at}[${index}]`, report)
      else if (typeof known === 'object') {
        if (!known.isList) normalize(member, known.fields, at, report)
        else if (Array.isArray(member))
          for (const [index, one] of member.entries()) normalize(one, known.fields, `${at}[${index}]`, report)
      }
    }
  }
}

/** Formats that are not validated. Upstream: GetUnrecognizedFormats. */
export function unknownFormats(schema: unknown, knows: (type: string | undefined, format: string) => boolean): Set<string> {
  const found = new Set<string>()
  const visit = (one: unknown): void => {
    if (!isRecord(one)) return
    const { type, format } = one
    if (typeof format === 'string' && format !== '' && !knows(typeof type === 'string' ? type : undefined, format))
      found.add(format)
    for (const [field, member] of Object.entries(one)) {
      const known = Object.hasOwn(schemaFields, field) ? schemaFields[field] : undefined
      if (known === 'schema' || known === 'quiet schema') visit(member)
      else if ((known === 'map of schemas' || known === 'list of schemas') && typeof member === 'object' && member !== null)
        for (const each of Object.values(member)) visit(each)
    }
  }
  visit(schema)
  return found
}
