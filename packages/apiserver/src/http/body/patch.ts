/** Reads the bodies of patches of all supported types. */
import type { PatchType, RequestOptions, Work } from '@capstan/kube'
import { badRequest, countingKeys, inPieces, isRecord, jsonTypeName, scanJSON, StatusError } from '@capstan/kube'
import type { Resource } from '../../registry/resource.ts'
import { duplicateField } from '../../verbs/steps/field-validation.ts'
import { unsupportedMediaType } from '../errors.ts'
import type { HttpRequest } from '../exchange.ts'
import { type BodyReaders, type Decoded, mediaType, parseJSON, readText, unmarshalErrors } from './body.ts'
import { parseYAML } from './parse-yaml.ts'

const customPatchTypes: readonly PatchType[] = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/apply-patch+yaml',
]
const builtinPatchTypes: readonly PatchType[] = [...customPatchTypes, 'application/strategic-merge-patch+json']

/** Returns the patch type of a request. @throws StatusError UnsupportedMediaType */
export function patchTypeOf(request: HttpRequest, resource: Resource): PatchType {
  const type = mediaType(request, '')
  const supported = (resource.builtin ? builtinPatchTypes : customPatchTypes).find((candidate) => candidate === type)
  if (supported) return supported
  if (!resource.builtin) throw unsupportedMediaType(customPatchTypes)
  throw new StatusError('UnsupportedMediaType', '415: Unsupported Media Type', { details: {} })
}

/**
 * Reads the body of a patch of this type. The messages in `duplicates` are about duplicate fields and, for a JSON patch, also about unknown
 * members of its operations.
 */
export async function readPatch(
  request: HttpRequest,
  type: PatchType,
  { fieldValidation: validation }: RequestOptions,
  { yaml, clock }: BodyReaders,
): Promise<Decoded> {
  const text = await readText(request)
  if (type === 'application/apply-patch+yaml') {
    const json = await inPieces(clock, parseIfJSON(text))
    // JSON with duplicate fields is parsed as YAML, because upstream reports them with the messages of its YAML decoder.
    const { value, duplicates: lines } =
      json === undefined || json.keys !== (await inPieces(clock, countingKeys(json.value)))
        ? await parseYAML(text, yaml, (error) => badRequest(`error decoding YAML: error converting YAML to JSON: ${error}`))
        : { value: json.value, duplicates: [] }
    // Upstream: an empty body decodes to an object without kind.
    if (value === null) throw badRequest('invalid object type: /, Kind=')
    if (!isRecord(value)) {
      const problem = `json: cannot unmarshal ${jsonTypeName(value)} into Go value of type map[string]interface {}`
      throw badRequest(`error decoding YAML: error unmarshaling JSON: while decoding JSON: ${problem}`)
    }
    if (lines.length > 0 && validation === 'Strict')
      throw badRequest(`error strict decoding YAML: error converting YAML to JSON: ${unmarshalErrors(lines)}`)
    return { body: value, duplicates: validation === 'Ignore' ? [] : lines }
  }
  const isStrategic = type === 'application/strategic-merge-patch+json'
  const reject = (error: string) => badRequest(isStrategic ? error : `error decoding patch: ${error}`)
  const { value, keys } = await inPieces(clock, parseJSON(text, reject))
  const duplicates = await inPieces(clock, duplicatesOf(text, value, keys))
  if (type !== 'application/json-patch+json') return { body: value, duplicates }
  if (value === null) return { body: [], duplicates }
  if (!Array.isArray(value)) {
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${jsonTypeName(value)} into Go value of type []handlers.jsonPatchOp`,
    )
  }
  if (value.length > maxPatchOperations) {
    const operations = value.length
    throw new StatusError(
      'RequestEntityTooLarge',
      `Request entity too large: The allowed maximum operations in a JSON patch is ${maxPatchOperations}, got ${operations}`,
    )
  }
  const problems = [...duplicates, ...unknownMembers(value)]
  return { body: value, duplicates: problems.map((problem) => `json patch ${problem}`) }
}

/** Returns messages about duplicate fields in a text with `keys` object keys. Scans the text only if its parsed value has fewer keys. */
function* duplicatesOf(text: string, value: unknown, keys: number): Work<string[]> {
  return keys === (yield* countingKeys(value)) ? [] : scanJSON(text).duplicates.map(duplicateField)
}

/** Messages about unknown members of the operations of a JSON patch. */
const unknownMembers = (operations: readonly unknown[]): string[] =>
  operations.flatMap((operation, index) =>
    Object.keys(isRecord(operation) ? operation : {})
      .filter((member) => !['op', 'path', 'from', 'value'].includes(member))
      .map((member) => `unknown field "[${index}].${member}"`),
  )

const maxPatchOperations = 10_000

/**
 * Parses a JSON object with the JSON parser, which is much faster than the YAML parser. Returns `undefined` for any other text.
 *
 * @throws StatusError RequestEntityTooLarge
 */
function* parseIfJSON(text: string): Work<{ readonly value: unknown; readonly keys: number } | undefined> {
  if (!/^\s*\{/.test(text)) return undefined
  try {
    return yield* parseJSON(text, badRequest)
  } catch (err) {
    // The caller parses the text as YAML, and reports an error if that fails as well.
    if (err instanceof StatusError && err.reason !== 'RequestEntityTooLarge') return undefined
    throw err
  }
}
