/**
 * Fields of schemas in CustomResourceDefinitions. Schemas are recursive, so no structural schema can describe them: this file prunes
 * their unknown fields, and omits fields that Go omits when empty. Upstream: JSONSchemaProps of k8s.io/apiextensions-apiserver, v0.36.
 */
import { isRecord } from '@capstan/kube'

type Fields = { readonly [field: string]: Normalization }
/** How a field is normalized. */
type Normalization =
  /** The field is kept unchanged. */
  | 'any'
  /** The field is a string, a list or a map that is omitted when empty. */
  | 'unless empty'
  /** The field is omitted when false. */
  | 'unless false'
  /** The field is a schema, which is normalized. */
  | 'schema'
  /** As `schema`, for a schema or a list of schemas. Upstream does not report the fields that it prunes there. */
  | 'quiet schema'
  /** The field is omitted when empty; its schemas are normalized. */
  | 'map of schemas'
  | 'list of schemas'
  /** The field is a struct, or with `isList` a list of structs that is omitted when empty. */
  | { readonly fields: Fields; readonly isList: boolean }

const schemaFields: Fields = {
  ...fieldsWith(
    'any',
    '$ref default maximum minimum maxLength minLength maxItems minItems multipleOf maxProperties minProperties example',
  ),
  ...fieldsWith('any', 'x-kubernetes-preserve-unknown-fields x-kubernetes-list-type x-kubernetes-map-type'),
  ...fieldsWith('unless empty', 'id $schema description type format title pattern enum required x-kubernetes-list-map-keys'),
  ...fieldsWith('unless false', 'exclusiveMaximum exclusiveMinimum uniqueItems nullable'),
  ...fieldsWith('unless false', 'x-kubernetes-embedded-resource x-kubernetes-int-or-string'),
  ...fieldsWith('list of schemas', 'allOf oneOf anyOf'),
  ...fieldsWith('map of schemas', 'properties patternProperties definitions'),
  ...fieldsWith('quiet schema', 'items additionalProperties additionalItems'),
  not: 'schema',
  dependencies: 'unless empty',
  externalDocs: { fields: fieldsWith('unless empty', 'description url'), isList: false },
  'x-kubernetes-validations': {
    fields: {
      ...fieldsWith('any', 'rule reason optionalOldSelf'),
      ...fieldsWith('unless empty', 'message messageExpression fieldPath'),
    },
    isList: true,
  },
}

function fieldsWith(normalization: Normalization, fields: string): Fields {
  return Object.fromEntries(fields.split(' ').map((field) => [field, normalization]))
}

/**
 * Normalizes a draft of a schema in place.
 * @param report called with the path of every unknown field that upstream reports
 */
export function normalizeSchema(schema: unknown, path: string, report: (path: string) => void): void {
  normalize(schema, schemaFields, path, report)
}

function normalize(value: unknown, fields: Fields, path: string, report: (path: string) => void): void {
  if (!isRecord(value)) return
  for (const [field, member] of Object.entries(value)) {
    const fieldPath = `${path}.${field}`
    const normalization = Object.hasOwn(fields, field) ? fields[field]! : undefined
    if (normalization === undefined) {
      report(fieldPath)
      delete value[field]
    } else if (normalization === 'unless false') {
      if (member === false) delete value[field]
    } else if (normalization === 'schema') normalizeSchema(member, fieldPath, report)
    else if (normalization === 'quiet schema')
      for (const inner of Array.isArray(member) ? member : [member]) normalizeSchema(inner, fieldPath, () => {})
    else if (normalization !== 'any') {
      const isEmpty = member === '' || (typeof member === 'object' && member !== null && Object.keys(member).length === 0)
      // `externalDocs` is a pointer to a struct in Go, which is kept when empty.
      const isStruct = typeof normalization === 'object' && !normalization.isList
      if (isEmpty && !isStruct) delete value[field]
      else if (normalization === 'map of schemas' && isRecord(member))
        for (const [name, inner] of Object.entries(member)) normalizeSchema(inner, `${fieldPath}.${name}`, report)
      else if (normalization === 'list of schemas' && Array.isArray(member))
        for (const [index, inner] of member.entries()) normalizeSchema(inner, `${fieldPath}[${index}]`, report)
      else if (typeof normalization === 'object') {
        if (!normalization.isList) normalize(member, normalization.fields, fieldPath, report)
        else if (Array.isArray(member))
          for (const [index, item] of member.entries()) normalize(item, normalization.fields, `${fieldPath}[${index}]`, report)
      }
    }
  }
}

/**
 * Returns the formats in a schema for which `isKnown` returns false. Does not visit the schemas of a list `items`, which structural schemas
 * do not have. Upstream: GetUnrecognizedFormats.
 */
export function unknownFormats(schema: unknown, isKnown: (type: string | undefined, format: string) => boolean): Set<string> {
  const formats = new Set<string>()
  const visit = (maybeSchema: unknown): void => {
    if (!isRecord(maybeSchema)) return
    const { type, format } = maybeSchema
    if (typeof format === 'string' && format !== '' && !isKnown(typeof type === 'string' ? type : undefined, format))
      formats.add(format)
    for (const [field, member] of Object.entries(maybeSchema)) {
      const normalization = Object.hasOwn(schemaFields, field) ? schemaFields[field] : undefined
      if (normalization === 'schema' || normalization === 'quiet schema') visit(member)
      else if (
        (normalization === 'map of schemas' || normalization === 'list of schemas') &&
        typeof member === 'object' &&
        member !== null
      )
        for (const innerSchema of Object.values(member)) visit(innerSchema)
    }
  }
  visit(schema)
  return formats
}
