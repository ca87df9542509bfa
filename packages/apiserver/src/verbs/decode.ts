/** From what a client sent to a draft of the object it means: type checked, pruned, defaulted. */
import {
  badRequest,
  draft,
  goText,
  invalid,
  invalidObject,
  isRecord,
  jsonTypeName,
  parseApiVersion,
  stableText,
  type StatusError,
  type UnknownObject,
  writeJSON,
} from '@capstan/kube'
import { readNulls } from '../kinds/go-nulls.ts'
import { convertedTypeProblem, jsonTypeProblem } from '../kinds/go-types.ts'
import { builtins } from '../registry/builtin.ts'
import type { Definition } from '../registry/definition.ts'
import { coerceMetadata } from './metadata.ts'
import type { Call } from './plane.ts'
import { schemeName } from './refusal.ts'

/** Where the object comes from decides how a wrong field is reported. */
export type Source = 'body' | 'patch' | 'apply'

/**
 * @param raw a draft that may be changed, see `draftOf`
 * @throws StatusError BadRequest or Invalid, in the words that a real server has for it
 */
export function decode(call: Call, raw: { [field: string]: unknown }, source: Source, old?: UnknownObject): UnknownObject {
  const { definition } = call
  checkType(call, raw, source)
  const patched = source !== 'body' && call.options.fieldValidation === 'Strict' ? stableText(raw) : ''
  const unknown = coerceMetadata(
    definition,
    raw,
    source === 'patch' ? wrongMetadataOf(call, { ...raw, metadata: draft(raw.metadata) }) : undefined,
  )
  const object = raw as UnknownObject
  if (definition.component !== undefined) {
    checkTypes(call, definition.component, object, source)
    readNulls(definition.component, object)
  }
  unknown.push(...definition.structural.prune(object), ...(definition.tidy?.(object) ?? []))
  report(call, unknown, source, patched)
  // Upstream: who applies null means null, and has to live with it.
  if (source !== 'apply') definition.structural.dropNulls(object)
  definition.normalize?.(object)
  definition.structural.default(object)
  definition.default?.(object, old)
  definition.share?.(object, call.request.body, old)
  checkPlace(call, object)
  return object
}

/** A private copy of a request's body. @throws StatusError BadRequest when it is no object */
export function draftOf({ kind }: Definition, body: unknown): { [field: string]: unknown } {
  if (isRecord(body)) return draft(body)
  const wanted = `struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`
  const problem = `json: cannot unmarshal ${jsonTypeName(body)} into Go value of type ${wanted}`
  throw badRequest(
    `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${problem}`,
  )
}

function checkType(call: Call, raw: { [field: string]: unknown }, source: Source): void {
  const { definition } = call
  const { apiVersion, kind, version, group, builtin } = definition
  for (const field of ['apiVersion', 'kind']) {
    const value = raw[field]
    if (value === undefined || value === null || typeof value === 'string') continue
    const problem = `json: cannot unmarshal ${jsonTypeName(value)} into Go struct field .${field} of type string`
    const text = writeJSON(raw)
    const start = text.length > 30 ? `${text.slice(0, 30)} ...` : text
    throw badRequest(
      `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${problem} (${start})`,
    )
  }
  if (builtin) {
    // Upstream: what a strategic merge patch makes of the type is not looked at.
    if (source === 'patch' && call.request.patchType === 'application/strategic-merge-patch+json')
      Object.assign(raw, { apiVersion, kind })
    raw.apiVersion ??= apiVersion
    raw.kind ??= kind
    if (raw.kind !== kind || raw.apiVersion !== apiVersion) {
      const sentKind = String(raw.kind)
      const sentVersion = String(raw.apiVersion).split('/').at(-1) ?? ''
      const isKnown = builtins.all.some((known) => known.kind === raw.kind && known.apiVersion === raw.apiVersion)
      const whyNot = isKnown
        ? `converting (${sentVersion}.${sentKind}) to (${group === '' ? 'core' : group}.${kind}): unknown conversion`
        : `no kind "${sentKind}" is registered for version "${String(raw.apiVersion)}" in scheme "${schemeName}"`
      if (source === 'patch') throw invalidPatch(stableText(raw), whyNot)
      throw badRequest(`${sentKind} in version "${sentVersion}" cannot be handled as a ${kind}: ${whyNot}`)
    }
    return
  }
  const sentGroup = typeof raw.apiVersion === 'string' ? parseApiVersion(raw.apiVersion).group : ''
  const sent = { group: sentGroup, kind: typeof raw.kind === 'string' ? raw.kind : '' }
  const name = isRecord(raw.metadata) && typeof raw.metadata.name === 'string' ? raw.metadata.name : ''
  if (!raw.kind) {
    if (source === 'patch') throw invalidPatch(stableText(raw), `Object 'Kind' is missing in '${stableText(raw)}'`)
    const text = writeJSON(raw)
    const start = text.length > 30 ? `${text.slice(0, 30)} ...` : text
    throw badRequest(
      `the object provided is unrecognized (must be of type ${kind}): Object 'Kind' is missing in '${text}' (${start})`,
    )
  }
  if (raw.kind !== kind) {
    throw invalidObject(sent, name, [invalid('kind', raw.kind, `must be ${kind}`)])
  }
  if (raw.apiVersion !== apiVersion) {
    if (source !== 'body') {
      // Upstream: nothing is known of an object of a version that there is not.
      const fields = Object.keys(raw).filter((field) => !['apiVersion', 'kind', 'metadata'].includes(field))
      if (sentGroup === group) report(call, fields.sort(), source, '')
      throw invalidObject(sent, name, [invalid('apiVersion', raw.apiVersion, `must be ${apiVersion}`)])
    }
    throw badRequest(
      `the API version in the data (${typeof raw.apiVersion === 'string' ? raw.apiVersion : ''}) does not match the expected API version (${group}/${version})`,
    )
  }
}

/** What is said when a patch leaves metadata that is not of its Go type. */
const wrongMetadataOf =
  ({ request }: Call, whole: object) =>
  (why: string): StatusError =>
    request.patchType === 'application/strategic-merge-patch+json'
      ? invalidPatch(goText(request.body), asConverterSays(why))
      : invalidPatch(stableText(whole), why)

/** What the converter of maps to structs says of what the decoder of JSON complains of. */
function asConverterSays(why: string): string {
  const [, found, wanted = ''] = /^json: cannot unmarshal (\S+).* of type (\S+)$/.exec(why) ?? []
  if (found === undefined) return why
  if (wanted.startsWith('[]')) return `cannot restore slice from ${found}`
  if (wanted.startsWith('map[')) return `cannot restore map from ${found}`
  if (wanted.startsWith('v1.')) return `cannot restore struct from: ${found}`
  return found === 'number' ? `cannot convert int64 to ${wanted}` : `unrecognized type: ${wanted}`
}

/** @throws StatusError BadRequest, or Invalid for what a patch leaves, when a value of a built-in kind is not of its Go type */
function checkTypes({ definition, request }: Call, component: string, object: UnknownObject, source: Source): void {
  const { kind, version } = definition
  if (source !== 'body' && request.patchType === 'application/strategic-merge-patch+json') {
    const problem = convertedTypeProblem(component, object)
    if (problem !== undefined) throw invalidPatch(goText(request.body), problem)
    return
  }
  const problem = jsonTypeProblem(component, object)
  if (problem === undefined) return
  if (source !== 'body') throw invalidPatch(stableText(object), problem)
  throw badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${problem}`)
}

/** Upstream names neither kind nor object here. */
const invalidPatch = (patch: string, problem: string): StatusError =>
  invalidObject({ group: '', kind: '' }, '', [invalid('patch', patch, problem)])

function report(call: Call, unknown: readonly string[], source: Source, patched: string): void {
  const { body, duplicates = [] } = call.request
  if (unknown.length + duplicates.length === 0 || call.options.fieldValidation === 'Ignore') return
  // Upstream's reader of built-in kinds complains while it reads.
  const fields = call.definition.builtin && source === 'body' ? asWritten(unknown, body) : unknown
  const texts = [...duplicates, ...fields.map((field) => `unknown field ${JSON.stringify(field)}`)]
  if (call.options.fieldValidation !== 'Strict') {
    call.warnings.push(...texts)
    return
  }
  throw strictError(call.definition, texts, source, patched)
}

/** Paths in the order in which the body has them. */
function asWritten(paths: readonly string[], body: unknown): readonly string[] {
  if (paths.length < 2) return paths
  const wanted = new Set(paths)
  const found: string[] = []
  const visit = (value: unknown, path: string): void => {
    if (wanted.has(path)) found.push(path)
    else if (Array.isArray(value)) for (const [index, item] of value.entries()) visit(item, `${path}[${index}]`)
    else if (isRecord(value)) for (const key of Object.keys(value)) visit(value[key], path === '' ? key : `${path}.${key}`)
  }
  visit(body, '')
  return found
}

/** What a strict decoder says. */
function strictError(
  { kind, version }: Pick<Definition, 'kind' | 'version'>,
  texts: readonly string[],
  source: Source,
  patched: string,
): StatusError {
  const text = `strict decoding error: ${texts.join(', ')}`
  return source === 'body'
    ? badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${text}`)
    : invalidPatch(patched, text)
}

/** Name and namespace of the object must be those of the request. */
export function checkPlace({ definition, request }: Call, { metadata }: UnknownObject): void {
  if (definition.namespaced) {
    if (metadata.namespace === undefined && request.namespace !== undefined) metadata.namespace = request.namespace
    if (metadata.namespace !== request.namespace) {
      throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
    }
  } else delete metadata.namespace
  if (request.name === undefined || metadata.name === request.name) return
  throw badRequest(
    metadata.name
      ? `the name of the object (${metadata.name}) does not match the name on the URL (${request.name})`
      : `the name of the object (${request.name} based on URL) was undeterminable: name must be provided`,
  )
}
