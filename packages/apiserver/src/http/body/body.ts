/** Parses request bodies, up to a size limit, with the errors of upstream's decoders. */
import type { Clock, RequestOptions, Work } from '@capstan/kube'
import {
  apiVersionOf,
  badRequest,
  countingKeys,
  inPieces,
  isRecord,
  notAnObjectText,
  MaxObjects,
  measureJSON,
  readJSON,
  scanJSON,
  StatusError,
} from '@capstan/kube'
import type { ProtobufMessages, Resource } from '../../registry/resource.ts'
import type { HttpRequest } from '../exchange.ts'
import { BodyTooLarge, maxBodyBytes } from '../exchange.ts'
import { tooLarge, tooManyObjects, unsupportedBody } from '../errors.ts'
import { decodingProtobuf, ProtobufError } from '../protobuf/protobuf.ts'
import { schemeName } from '../../verbs/errors.ts'
import { duplicateField } from '../../verbs/steps/field-validation.ts'
import type { YAMLParser } from './read-yaml.ts'
import { parseYAML } from './parse-yaml.ts'
import { maxDepth, rejectUnstorable } from './storable.ts'

/** Dependencies of the functions that read bodies. */
export interface BodyReaders {
  readonly yaml: YAMLParser
  readonly protobufMessages: ProtobufMessages
  readonly clock: Clock
}

export interface Decoded {
  readonly body: unknown
  /** Messages about duplicate fields, for field validation. */
  readonly duplicates: readonly string[]
  /** Only for a JSON body with duplicate fields: the paths of all fields in body order; a duplicate field is listed each time it occurs. */
  readonly fieldPaths?: readonly string[]
}

/** Reads the object of a create or an update. */
export async function readObject(
  request: HttpRequest,
  resource: Resource,
  options: RequestOptions,
  { yaml, protobufMessages, clock }: BodyReaders,
): Promise<Decoded> {
  const type = mediaType(request, 'application/json')
  // Upstream does not accept protobuf for custom resources.
  if (type === protobuf && resource.builtin) {
    return {
      body: await inPieces(
        clock,
        readProtobuf(protobufMessages, await readBytes(request), { apiVersion: apiVersionOf(resource), kind: resource.kind }),
      ),
      duplicates: [],
    }
  }
  if (type !== 'application/json' && type !== 'application/yaml') throw unsupportedBody(type)
  const text = await readText(request)
  const { value, duplicates, fieldPaths }: ParsedObject =
    type === 'application/json'
      ? await inPieces(
          clock,
          parseObject(text, resource.builtin, (problem) => unrecognized(resource.kind, problem, text)),
        )
      : await parseYAMLObject(text, resource, options.fieldValidation, yaml)
  if (!resource.builtin && value.kind === undefined) {
    throw unrecognized(resource.kind, `Object 'Kind' is missing in '${text}'`, text)
  }
  if (options.fieldValidation === 'Ignore') return { body: value, duplicates: [] }
  return { body: value, duplicates, ...(fieldPaths === undefined ? {} : { fieldPaths }) }
}

/** Reads DeleteOptions; `undefined` when the body is empty. */
export async function readDeleteOptions(request: HttpRequest, { yaml, protobufMessages, clock }: BodyReaders): Promise<unknown> {
  const bytes = await readBytes(request)
  if (bytes.length === 0) return undefined
  const type = mediaType(request, 'application/json')
  if (type === protobuf)
    return inPieces(clock, readProtobuf(protobufMessages, bytes, { apiVersion: 'v1', kind: 'DeleteOptions' }))
  const text = bytes.toString('utf8')
  if (type !== 'application/json' && type !== 'application/yaml') throw unsupportedBody(type)
  const value =
    type === 'application/yaml'
      ? ((await parseYAML(text, yaml, badRequest)).value ?? {})
      : (await inPieces(clock, parseObject(text, true, badRequest))).value
  if (!isRecord(value)) throw badRequest(notAnObject(value))
  const { kind = 'DeleteOptions', apiVersion = 'v1' } = value
  if (kind !== 'DeleteOptions')
    throw badRequest(
      `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "${schemeName}"`,
    )
  return value
}

export const mediaType = (request: HttpRequest, defaultType: string): string =>
  (request.headers['content-type'] || defaultType).split(';', 1)[0]!.trim().toLowerCase()

export async function readText(request: HttpRequest): Promise<string> {
  return (await readBytes(request)).toString('utf8')
}

async function readBytes(request: HttpRequest): Promise<Buffer> {
  try {
    return await request.body(maxBodyBytes)
  } catch (err) {
    if (err instanceof BodyTooLarge) throw tooLarge(maxBodyBytes)
    throw err
  }
}

const protobuf = 'application/vnd.kubernetes.protobuf'

function* readProtobuf(messages: ProtobufMessages, bytes: Buffer, type: { apiVersion: string; kind: string }): Work<unknown> {
  try {
    const object = yield* decodingProtobuf(messages, bytes, type, maxDepth)
    return rejectUnstorable(object, bytes.toString('latin1'), (error) => unrecognized(type.kind, error, bytes))
  } catch (err) {
    if (!(err instanceof ProtobufError)) throw err
    const { kind, version } = err.sentType ?? {}
    if (kind === undefined) throw unrecognized(type.kind, err.message, bytes)
    throw badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${type.kind}: ${err.message}`)
  }
}

/** Parses a JSON body and finds its duplicate fields. Upstream's decoder of built-in kinds reads `null` as an empty object. */
function* parseObject(text: string, builtin: boolean, reject: (problem: string) => StatusError): Work<ParsedObject> {
  const { value, keys } = yield* parseJSON(text, (error) => reject(`${jsonProblem}${error}`))
  if (value === null && builtin) return { value: {}, duplicates: [] }
  if (!isRecord(value)) throw reject(notAnObject(value))
  yield
  if (keys === (yield* countingKeys(value))) return { value, duplicates: [] }
  yield
  const { duplicates, keys: fieldPaths } = scanJSON(text)
  return { value, duplicates: duplicates.map(duplicateField), ...(duplicates.length === 0 ? {} : { fieldPaths }) }
}

/** An object with the messages about its duplicate fields. */
interface ParsedObject extends Omit<Decoded, 'body'> {
  readonly value: Record<string, unknown>
}

const jsonProblem = "couldn't get version/kind; json parse error: "

/** Returns the error text for a body that is not an object. Upstream decodes `null` to an empty object, and reports its missing kind. */
function notAnObject(value: unknown): string {
  if (value === null) return "Object 'Kind' is missing in 'null'"
  return `${jsonProblem}${notAnObjectText(value)}`
}

/** A JSON value, and the number of object keys in its text: the value has fewer keys if the text has duplicate fields. */
type Parsed = { readonly value: unknown; readonly keys: number }

/**
 * Parses a JSON text. `reject` creates the StatusError from an error text, for a text that is malformed, is nested too deeply, or contains a
 * number that is infinite as a double.
 *
 * @throws StatusError also for too many objects, and for a key `__proto__`
 */
export function* parseJSON(text: string, reject: (error: string) => StatusError): Work<Parsed> {
  yield
  const { keys, objects, depth } = measureJSON(text)
  if (depth > maxDepth) throw reject('exceeded max depth')
  if (objects > MaxObjects) throw tooManyObjects()
  yield
  let value: unknown
  try {
    value = readJSON(text)
  } catch {
    throw reject(scanJSON(text).error ?? 'unexpected end of JSON input')
  }
  yield
  return { value: rejectUnstorable(value, text, reject), keys }
}

async function parseYAMLObject(
  text: string,
  { kind, builtin }: Pick<Resource, 'kind' | 'builtin'>,
  validation: RequestOptions['fieldValidation'],
  yaml: YAMLParser,
): Promise<ParsedObject> {
  const { value, duplicates: lines } = await parseYAML(text, yaml, (error) => unrecognized(kind, error, text))
  if (value === null && builtin) return { value: {}, duplicates: [] }
  if (!isRecord(value)) throw unrecognized(kind, notAnObject(value), text)
  if (validation === 'Ignore') return { value, duplicates: [] }
  const isOneMessage = validation === 'Strict' && lines.length > 0
  return { value, duplicates: isOneMessage ? [unmarshalErrors(lines)] : lines }
}

/** Joins error messages about lines of a YAML text, as go-yaml does. */
export const unmarshalErrors = (lines: readonly string[]): string => `yaml: unmarshal errors:\n  ${lines.join('\n  ')}`

const unrecognized = (kind: string, problem: string, body: string | Buffer): StatusError =>
  badRequest(`the object provided is unrecognized (must be of type ${kind}): ${problem} (${excerpt(Buffer.from(body))})`)

/** Returns the first bytes of a body: as text when it starts with `{`, in hexadecimal otherwise. */
function excerpt(bytes: Buffer): string {
  if (bytes.length === 0) return '<empty>'
  const start = bytes.subarray(0, 30)
  const printed = bytes[0] === 0x7b ? start.toString('utf8') : start.toString('hex')
  return bytes.length > 30 ? `${printed} ...` : printed
}
