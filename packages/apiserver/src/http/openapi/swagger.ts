/**
 * OpenAPI v2 of all groups, for clients that do not support v3: merges the v3 documents, and converts their paths and schemas to v2.
 * Upstream: pkg/builder of k8s.io/kube-openapi, and pkg/controller/openapi/v2 of k8s.io/apiextensions-apiserver v0.36.
 */
import { isRecord } from '@capstan/kube'
import { jsonMember, joinWithCommas } from './json-parts.ts'
import type { OpenAPIPart } from './openapi.ts'

export type Fields = { readonly [name: string]: unknown }

/** Members of the document besides paths and definitions. */
export interface SwaggerHead {
  readonly swagger: '2.0'
  readonly info: { readonly title: string; readonly version: string }
  readonly securityDefinitions: Fields
  readonly security: readonly { readonly [scheme: string]: readonly string[] }[]
}

export const swaggerHead = (version: string): SwaggerHead => ({
  swagger: '2.0',
  info: { title: 'Kubernetes', version },
  securityDefinitions: {
    BearerToken: { description: 'Bearer Token authentication', type: 'apiKey', name: 'authorization', in: 'header' },
  },
  security: [{ BearerToken: [] }],
})

/** Encoding of the document. Each path and definition is encoded separately, so that a document of any size is encoded in pieces. */
export interface SwaggerEncoding {
  path(path: string, item: Fields): Buffer
  definition(name: string, schema: Fields): Buffer
  /** Returns the whole document, in parts. */
  document(head: SwaggerHead, paths: readonly Buffer[], definitions: readonly Buffer[]): Iterable<Buffer>
}

export const swaggerJSON: SwaggerEncoding = {
  path: jsonMember,
  definition: jsonMember,
  *document({ security, securityDefinitions, ...head }, paths, definitions) {
    yield Buffer.from(`${JSON.stringify(head).slice(0, -1)},"paths":{`)
    yield* joinWithCommas(paths)
    yield Buffer.from('},"definitions":{')
    yield* joinWithCommas(definitions)
    yield Buffer.from(`},${JSON.stringify({ securityDefinitions, security }).slice(1)}`)
  },
}

/**
 * Creates the document of v2 from the parts of the v3 documents. Yields often, so that the caller can pause.
 * @returns the document in parts
 */
export function* swaggerOf(
  parts: Iterable<OpenAPIPart>,
  head: SwaggerHead,
  encoding: SwaggerEncoding,
): Generator<undefined, Iterable<Buffer>> {
  const paths = new Map<string, Buffer>()
  const definitions = new Map<string, Buffer>()
  for (const part of parts) {
    for (const [path, item] of Object.entries(part.paths)) {
      paths.set(path, encoding.path(path, pathItem(item as Fields, path)))
      yield
    }
    for (const [name, schema] of Object.entries(part.schemas)) {
      if (!definitions.has(name)) definitions.set(name, encoding.definition(name, definition(schema as Fields)))
      yield
    }
  }
  return encoding.document(head, sorted(paths), sorted(definitions))
}

const sorted = (encoded: ReadonlyMap<string, Buffer>): Buffer[] =>
  [...encoded].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, bytes]) => bytes)

const entries = (value: unknown): [string, unknown][] => (isRecord(value) ? Object.entries(value) : [])

/** Keywords that upstream omits. v2 does not have them, except `allOf`. */
const omittedKeywords = new Set(['allOf', 'oneOf', 'anyOf', 'not', 'nullable'])

/** Converts a schema of v3 to v2. */
export function definition(schema: Fields): Fields {
  const referenced = Array.isArray(schema.allOf) && schema.allOf.length === 1 ? (schema.allOf[0] as Fields) : undefined
  if (typeof referenced?.$ref === 'string') {
    // In v3 a reference with further keywords is wrapped in an allOf. Upstream's v2 has the keywords beside the reference, except the
    // default.
    const { allOf: _, default: _default, ...keywords } = schema
    return { ...keywords, $ref: definitionRef(referenced.$ref) }
  }
  const preservesUnknown = schema['x-kubernetes-preserve-unknown-fields'] === true
  const isNullable = schema.nullable === true
  const converted: { [name: string]: unknown } = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (value === undefined || omittedKeywords.has(keyword)) continue
    if (keyword === '$ref') converted.$ref = definitionRef(value as string)
    else if (keyword === 'properties' || keyword === 'items') {
      // Upstream omits both keywords if the schema allows unknown fields or null, because kubectl fails when such a schema has one of
      // these keywords.
      if (preservesUnknown || isNullable) continue
      converted[keyword] =
        keyword === 'items'
          ? definition(value as Fields)
          : Object.fromEntries(entries(value).map(([name, property]) => [name, definition(property as Fields)]))
    } else if (keyword === 'additionalProperties') converted[keyword] = isRecord(value) ? definition(value) : value
    else if (keyword === 'type' && (isNullable || (preservesUnknown && value === 'object'))) continue
    else converted[keyword] = value
  }
  if (converted.type === 'array' && converted.items === undefined) delete converted.type
  const nullableProperties = entries(schema.properties).flatMap(([name, property]) =>
    (property as Fields).nullable === true ? [name] : [],
  )
  if (Array.isArray(converted.required) && nullableProperties.length > 0) {
    converted.required = converted.required.filter((name) => !nullableProperties.includes(name as string))
    if ((converted.required as unknown[]).length === 0) delete converted.required
  }
  return converted
}

const definitionRef = (ref: string): string => ref.replace('#/components/schemas/', '#/definitions/')

const methods = new Set(['get', 'put', 'post', 'delete', 'options', 'head', 'patch'])
const produces = ['application/json', 'application/yaml']

function pathItem(item: Fields, path: string): Fields {
  const converted: { [name: string]: unknown } = {}
  for (const [member, value] of Object.entries(item)) {
    if (methods.has(member)) converted[member] = operation(value as Fields, path)
    else if (member === 'parameters') converted.parameters = (value as readonly Fields[]).map(parameter)
  }
  return converted
}

function operation({ parameters, requestBody, responses, ...otherFields }: Fields, path: string): Fields {
  const content = isRecord(requestBody) ? (requestBody.content as { [type: string]: Fields }) : {}
  const [body] = Object.values(content)
  const inBody = body ? [{ name: 'body', in: 'body', required: true, schema: definition(body.schema as Fields) }] : []
  return {
    ...otherFields,
    consumes: body ? Object.keys(content) : ['*/*'],
    produces,
    schemes: ['https'],
    tags: [tagOf(path)],
    parameters: [...inBody, ...((parameters ?? []) as readonly Fields[]).map(parameter)],
    responses: {
      ...Object.fromEntries(entries(responses).map(([code, content]) => [code, response(content as Fields)])),
      '401': { description: 'Unauthorized' },
    },
  }
}

/** Tag of a path: `/apis/apps/v1/deployments` has `apps_v1`. */
function tagOf(path: string): string {
  const [, root, first = '', second = ''] = path.split('/')
  if (root === 'api') return `core_${first}`
  const [group = ''] = first.split('.')
  return `${first.endsWith('.k8s.io') ? group : first.replaceAll('.', '')}_${second}`
}

function parameter({ schema, ...otherFields }: Fields): Fields {
  const { type = 'string' } = isRecord(schema) ? schema : {}
  return { uniqueItems: true, type, ...otherFields }
}

function response({ description, content }: Fields): Fields {
  const [mediaType] = Object.values(isRecord(content) ? content : {}) as Fields[]
  return { description, ...(mediaType ? { schema: definition(mediaType.schema as Fields) } : {}) }
}
