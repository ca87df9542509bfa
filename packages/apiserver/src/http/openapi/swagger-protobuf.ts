/**
 * OpenAPI v2 as protobuf, the only format that Go clients request. Upstream: github.com/google/gnostic-models/openapiv2, Document; members
 * without a field of their own are encoded as text.
 */
import { isNumeric, isRecord, writeJSON } from '@capstan/kube'
import type { Fields, SwaggerForm } from './swagger.ts'

export const swaggerProtobuf: SwaggerForm = {
  path: (path, item) => field(2, entry(path, pathItem(item))),
  definition: (name, of) => field(1, entry(name, schema(of))),
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

/** Tag and length of a message that consists of these parts. */
const fieldHead = (number: number, parts: readonly Buffer[]): Buffer =>
  Buffer.concat([tag(number, 2), varint(parts.reduce((length, part) => length + part.length, 0))])

/** Encoded fields of a message; `undefined` for an absent one. */
type Parts = readonly (Buffer | undefined)[]

const message = (parts: Parts): Buffer => Buffer.concat(parts.filter((part) => part !== undefined))

function varintOf(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  bytes.push(rest)
  return Buffer.from(bytes)
}

/** Encoded small numbers, which most tags and lengths are. They are shared, because a document has millions. */
const smallVarints: readonly Buffer[] = Array.from({ length: 512 }, (_, value) => varintOf(value))
const varint = (value: number): Buffer => smallVarints[value] ?? varintOf(value)

const tag = (number: number, wire: 0 | 1 | 2): Buffer => varint(number * 8 + wire)

/** Encodes a message or bytes. */
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

/** Encodes any value as YAML. */
const any = (value: unknown): Buffer => message([text(2, `${writeJSON(value)}\n`)])

/** Encodes a map as messages with a name and a value. */
const named = <T>(map: { readonly [name: string]: T }, value: (of: T & Fields) => Buffer): Buffer[] =>
  Object.entries(map).map(([name, of]) => entry(name, value(of as T & Fields)))

const entry = (name: string, value: Buffer): Buffer => message([text(1, name), field(2, value)])

const extensions = (number: number, of: Fields): Buffer[] =>
  named(Object.fromEntries(Object.entries(of).filter(([name]) => name.startsWith('x-'))), any).map((item) => field(number, item))

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

const operation = (of: Fields): Buffer =>
  message([
    ...texts(1, of.tags),
    text(3, of.description),
    text(5, of.operationId),
    ...texts(6, of.produces),
    ...texts(7, of.consumes),
    ...parameters(8, of.parameters),
    isRecord(of.responses)
      ? field(
          9,
          message(named(of.responses, (one) => message([field(1, response(one as Fields))])).map((item) => field(1, item))),
        )
      : undefined,
    ...texts(10, of.schemes),
    ...extensions(13, of),
  ])

const response = ({ description, schema: of }: Fields): Buffer =>
  message([text(1, description), isRecord(of) ? field(2, message([field(1, schema(of))])) : undefined])

const parameters = (number: number, list: unknown): Buffer[] =>
  Array.isArray(list) ? (list as Fields[]).map((one) => field(number, message([field(1, parameter(one))]))) : []

function parameter(of: Fields): Buffer {
  const { name, in: where, description, required, type } = of
  if (where === 'body') {
    const body = [text(1, description), text(2, name), text(3, where), flag(4, required)]
    return message([field(1, message([...body, isRecord(of.schema) ? field(5, schema(of.schema)) : undefined]))])
  }
  const start = [flag(1, required), text(2, where), text(3, description), text(4, name)]
  return message([
    field(
      2,
      where === 'path'
        ? message([field(4, message([...start, text(5, type), flag(19, of.uniqueItems)]))])
        : message([field(3, message([...start, text(6, type), flag(20, of.uniqueItems)]))]),
    ),
  ])
}

const schema = (of: Fields): Buffer =>
  message([
    text(1, of.$ref),
    text(2, of.format),
    text(3, of.title),
    text(4, of.description),
    of.default === undefined ? undefined : field(5, any(of.default)),
    double(6, of.multipleOf),
    double(7, of.maximum),
    flag(8, of.exclusiveMaximum),
    double(9, of.minimum),
    flag(10, of.exclusiveMinimum),
    count(11, of.maxLength),
    count(12, of.minLength),
    text(13, of.pattern),
    count(14, of.maxItems),
    count(15, of.minItems),
    flag(16, of.uniqueItems),
    count(17, of.maxProperties),
    count(18, of.minProperties),
    ...texts(19, of.required),
    ...(Array.isArray(of.enum) ? of.enum.map((value) => field(20, any(value))) : []),
    isRecord(of.additionalProperties)
      ? field(21, message([field(1, schema(of.additionalProperties))]))
      : of.additionalProperties === true
        ? field(21, message([flag(2, true)]))
        : undefined,
    typeof of.type === 'string' ? field(22, message([text(1, of.type)])) : undefined,
    isRecord(of.items) ? field(23, message([field(1, schema(of.items))])) : undefined,
    isRecord(of.properties)
      ? field(25, message(named(of.properties as { [name: string]: Fields }, schema).map((item) => field(1, item))))
      : undefined,
    ...extensions(31, of),
  ])
