/**
 * OpenAPI v2 as protobuf, the only format in which client-go requests this document. Extensions, defaults and enum values are encoded as
 * YAML.
 * Upstream: github.com/google/gnostic-models/openapiv2, Document.
 */
import { isNumeric, isRecord, writeJSON } from '@capstan/kube'
import type { Fields, SwaggerEncoding } from './swagger.ts'

export const swaggerProtobuf: SwaggerEncoding = {
  path: (path, item) => field(2, entry(path, pathItem(item))),
  definition: (name, schemaFields) => field(1, entry(name, schema(schemaFields))),
  *document({ swagger, info, security, securityDefinitions }, paths, definitions) {
    yield message([text(1, swagger), field(2, message([text(1, info.title), text(2, info.version)]))])
    yield fieldHead(8, paths)
    yield* paths
    yield fieldHead(9, definitions)
    yield* definitions
    yield message(
      security.map((requirement) =>
        field(12, message(named(requirement, (scopes) => message(texts(1, scopes))).map((item) => field(1, item)))),
      ),
    )
    yield field(13, message(named(securityDefinitions as { [name: string]: Fields }, apiKey).map((item) => field(1, item))))
  },
}

/** Encodes the tag and the length of a field whose value consists of these parts. */
const fieldHead = (number: number, parts: readonly Buffer[]): Buffer =>
  Buffer.concat([tag(number, 2), varint(parts.reduce((length, part) => length + part.length, 0))])

/** Encoded fields of a message; `undefined` for an absent field. */
type Parts = readonly (Buffer | undefined)[]

const message = (parts: Parts): Buffer => Buffer.concat(parts.filter((part) => part !== undefined))

function varintOf(value: number): Buffer {
  const bytes: number[] = []
  let remaining = value
  for (; remaining >= 0x80; remaining = Math.floor(remaining / 0x80)) bytes.push((remaining % 0x80) | 0x80)
  bytes.push(remaining)
  return Buffer.from(bytes)
}

/** Encoded small numbers, shared because a document contains more than 100,000 of them: most tags and lengths are small. */
const smallVarints: readonly Buffer[] = Array.from({ length: 512 }, (_, value) => varintOf(value))
const varint = (value: number): Buffer => smallVarints[value] ?? varintOf(value)

const tag = (number: number, wire: 0 | 1 | 2): Buffer => varint(number * 8 + wire)

/** Encodes a field whose value is a message or a text. */
const field = (number: number, bytes: Buffer): Buffer => Buffer.concat([tag(number, 2), varint(bytes.length), bytes])
const text = (number: number, value: unknown): Buffer | undefined =>
  typeof value === 'string' && value !== '' ? field(number, Buffer.from(value)) : undefined
const texts = (number: number, values: unknown): Buffer[] =>
  Array.isArray(values) ? values.map((value) => field(number, Buffer.from(String(value)))) : []
const flag = (number: number, value: unknown): Buffer | undefined =>
  value === true ? Buffer.concat([tag(number, 0), varint(1)]) : undefined
const count = (number: number, value: unknown): Buffer | undefined =>
  typeof value === 'number' && value > 0 ? Buffer.concat([tag(number, 0), varint(value)]) : undefined

function double(number: number, value: unknown): Buffer | undefined {
  if (!isNumeric(value)) return undefined
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(Number(value))
  return Buffer.concat([tag(number, 1), bytes])
}

/** Encodes a message `Any`, which has the value as YAML. JSON is valid YAML. */
const any = (value: unknown): Buffer => message([text(2, `${writeJSON(value)}\n`)])

/** Encodes a map as messages with a name and a value. */
const named = <T>(map: { readonly [name: string]: T }, value: (member: T & Fields) => Buffer): Buffer[] =>
  Object.entries(map).map(([name, member]) => entry(name, value(member as T & Fields)))

const entry = (name: string, value: Buffer): Buffer => message([text(1, name), field(2, value)])

const extensions = (number: number, fields: Fields): Buffer[] =>
  named(Object.fromEntries(Object.entries(fields).filter(([name]) => name.startsWith('x-'))), any).map((item) =>
    field(number, item),
  )

const apiKey = ({ type, name, in: where, description }: Fields): Buffer =>
  message([field(2, message([text(1, type), text(2, name), text(3, where), text(4, description)]))])

const operationFields = { get: 2, put: 3, post: 4, delete: 5, options: 6, head: 7, patch: 8 } as const

const pathItem = (item: Fields): Buffer =>
  message([
    ...Object.entries(operationFields).map(([method, number]) =>
      isRecord(item[method]) ? field(number, operation(item[method])) : undefined,
    ),
    ...parameters(9, item.parameters),
  ])

const operation = (fields: Fields): Buffer =>
  message([
    ...texts(1, fields.tags),
    text(3, fields.description),
    text(5, fields.operationId),
    ...texts(6, fields.produces),
    ...texts(7, fields.consumes),
    ...parameters(8, fields.parameters),
    isRecord(fields.responses)
      ? field(
          9,
          message(
            named(fields.responses, (responseFields) => message([field(1, response(responseFields as Fields))])).map((item) =>
              field(1, item),
            ),
          ),
        )
      : undefined,
    ...texts(10, fields.schemes),
    ...extensions(13, fields),
  ])

const response = ({ description, schema: schemaFields }: Fields): Buffer =>
  message([text(1, description), isRecord(schemaFields) ? field(2, message([field(1, schema(schemaFields))])) : undefined])

const parameters = (number: number, list: unknown): Buffer[] =>
  Array.isArray(list)
    ? (list as Fields[]).map((parameterFields) => field(number, message([field(1, parameter(parameterFields))])))
    : []

function parameter(fields: Fields): Buffer {
  const { name, in: where, description, required, type } = fields
  if (where === 'body') {
    const body = [text(1, description), text(2, name), text(3, where), flag(4, required)]
    return message([field(1, message([...body, isRecord(fields.schema) ? field(5, schema(fields.schema)) : undefined]))])
  }
  const start = [flag(1, required), text(2, where), text(3, description), text(4, name)]
  return message([
    field(
      2,
      where === 'path'
        ? message([field(4, message([...start, text(5, type), flag(19, fields.uniqueItems)]))])
        : message([field(3, message([...start, text(6, type), flag(20, fields.uniqueItems)]))]),
    ),
  ])
}

const schema = (fields: Fields): Buffer =>
  message([
    text(1, fields.$ref),
    text(2, fields.format),
    text(3, fields.title),
    text(4, fields.description),
    fields.default === undefined ? undefined : field(5, any(fields.default)),
    double(6, fields.multipleOf),
    double(7, fields.maximum),
    flag(8, fields.exclusiveMaximum),
    double(9, fields.minimum),
    flag(10, fields.exclusiveMinimum),
    count(11, fields.maxLength),
    count(12, fields.minLength),
    text(13, fields.pattern),
    count(14, fields.maxItems),
    count(15, fields.minItems),
    flag(16, fields.uniqueItems),
    count(17, fields.maxProperties),
    count(18, fields.minProperties),
    ...texts(19, fields.required),
    ...(Array.isArray(fields.enum) ? fields.enum.map((value) => field(20, any(value))) : []),
    isRecord(fields.additionalProperties)
      ? field(21, message([field(1, schema(fields.additionalProperties))]))
      : fields.additionalProperties === true
        ? field(21, message([flag(2, true)]))
        : undefined,
    typeof fields.type === 'string' ? field(22, message([text(1, fields.type)])) : undefined,
    isRecord(fields.items) ? field(23, message([field(1, schema(fields.items))])) : undefined,
    isRecord(fields.properties)
      ? field(25, message(named(fields.properties as { [name: string]: Fields }, schema).map((item) => field(1, item))))
      : undefined,
    ...extensions(31, fields),
  ])
