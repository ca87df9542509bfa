/** Decodes the object of a request into a draft: checks types, prunes unknown fields, sets defaults. */
import {
  appendAll,
  atOnce,
  badRequest,
  draft,
  drafting,
  goText,
  invalid,
  invalidObject,
  isRecord,
  jsonTypeName,
  notAnObjectText,
  parseApiVersion,
  stableText,
  type UnknownObject,
  type Work,
  writeJSON,
  writingStableText,
} from '@capstan/kube'
import type { ResourceInfo, GoType } from '../../registry/resource-info.ts'
import { coerceMetadata } from './metadata.ts'
import { inBodyOrder, MaxStrictErrors, problemsInBodyOrder, strictError, unknownField } from './field-validation.ts'
import { invalidPatch, wrongMetadataOf } from './patch-errors.ts'
import type { RequestContext } from '../context.ts'
import { schemeName } from '../errors.ts'

/** Origin of an object: the body of the request, or the result of a patch or an apply. Error texts depend on it. */
export type Source = 'body' | 'patch' | 'apply'

type Draft = { [field: string]: unknown }

/** Decodes an object without pauses; see `decoding`. */
export const decode = (...args: Parameters<typeof decoding>): UnknownObject => atOnce(decoding(...args))

/**
 * Decodes an object. The caller can pause at each `yield`.
 *
 * @param raw a mutable copy, such as `draftOf` returns; it is changed and returned
 * @param old the stored object, if the request changes one
 * @throws StatusError as upstream: BadRequest or Invalid
 */
export function* decoding(context: RequestContext, raw: Draft, source: Source, old?: UnknownObject): Work<UnknownObject> {
  const { info } = context
  yield
  setAndCheckType(context, raw, source)
  const patchedText = source !== 'body' && context.options.fieldValidation === 'Strict' ? yield* writingStableText(raw) : ''
  const unknown = coerceMetadata(
    info,
    raw,
    source === 'patch' ? wrongMetadataOf(context, { ...raw, metadata: draft(raw.metadata) }) : undefined,
  )
  const object = raw as UnknownObject
  yield
  if (info.goType) {
    yield* checkTypes(context, info.goType, object, source)
    yield
    yield* info.goType.readNulls(object)
    yield
  }
  appendAll(unknown, yield* info.structural.pruning(object), info.strategy.pruneUnknown?.(object) ?? [])
  yield
  reportUnknownFields(context, unknown, source, patchedText)
  yield
  // Upstream: an apply keeps null values.
  if (source !== 'apply') yield* info.structural.droppingNulls(object)
  info.strategy.normalize?.(object)
  yield
  yield* info.structural.defaulting(object)
  info.strategy.default?.(object, old)
  info.strategy.reuseFrozen?.(object, context.request.body, old)
  setNamespaceAndCheckKey(context, object)
  return object
}

/** Decodes a copy of the request's body. */
export function* decodingBody(context: RequestContext, old?: UnknownObject): Work<UnknownObject> {
  const { body } = context.request
  const raw = isRecord(body) ? yield* drafting(body) : draftOf(context.info, body)
  return yield* decoding(context, raw, 'body', old)
}

/** Returns a mutable copy of a request's body. @throws StatusError BadRequest when it is not an object */
export function draftOf({ kind }: ResourceInfo, body: unknown): Draft {
  if (isRecord(body)) return draft(body)
  throw badRequest(
    `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${notAnObjectText(body)}`,
  )
}

/**
 * Checks apiVersion and kind. For a built-in kind, first sets them if they are missing or result from a strategic merge patch.
 *
 * @throws StatusError BadRequest or Invalid when they are not those of the resource
 */
function setAndCheckType(context: RequestContext, raw: Draft, source: Source): void {
  const { info } = context
  const { apiVersion, kind, version, group, builtin } = info
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
    // Upstream does not check the type that results from a strategic merge patch.
    if (source === 'patch' && context.request.patchType === 'application/strategic-merge-patch+json')
      Object.assign(raw, { apiVersion, kind })
    raw.apiVersion ??= apiVersion
    raw.kind ??= kind
    if (raw.kind !== kind || raw.apiVersion !== apiVersion) {
      const sentKind = String(raw.kind)
      const sentVersion = String(raw.apiVersion).split('/').at(-1) ?? ''
      const isKnown = info.goType?.isRegistered(raw.apiVersion, raw.kind) === true
      const reason = isKnown
        ? `converting (${sentVersion}.${sentKind}) to (${group === '' ? 'core' : group}.${kind}): unknown conversion`
        : `no kind "${sentKind}" is registered for version "${String(raw.apiVersion)}" in scheme "${schemeName}"`
      if (source === 'patch') throw invalidPatch(stableText(raw), reason)
      throw badRequest(`${sentKind} in version "${sentVersion}" cannot be handled as a ${kind}: ${reason}`)
    }
    return
  }
  const sentGroup = typeof raw.apiVersion === 'string' ? parseApiVersion(raw.apiVersion).group : ''
  const sentKindOfGroup = { group: sentGroup, kind: typeof raw.kind === 'string' ? raw.kind : '' }
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
    throw invalidObject(sentKindOfGroup, name, [invalid('kind', raw.kind, `must be ${kind}`)])
  }
  if (raw.apiVersion !== apiVersion) {
    if (source !== 'body') {
      // Upstream: for another version of the same group, all fields are unknown.
      const fields = Object.keys(raw).filter((field) => !['apiVersion', 'kind', 'metadata'].includes(field))
      if (sentGroup === group) reportUnknownFields(context, fields.sort(), source, '')
      throw invalidObject(sentKindOfGroup, name, [invalid('apiVersion', raw.apiVersion, `must be ${apiVersion}`)])
    }
    throw badRequest(
      `the API version in the data (${typeof raw.apiVersion === 'string' ? raw.apiVersion : ''}) does not match the expected API version (${group}/${version})`,
    )
  }
}

/** @throws StatusError when a value of a built-in kind does not have its Go type: BadRequest, or Invalid when it results from a patch */
function* checkTypes({ info, request }: RequestContext, goType: GoType, object: UnknownObject, source: Source): Work<void> {
  const { kind, version } = info
  if (source !== 'body' && request.patchType === 'application/strategic-merge-patch+json') {
    const problem = yield* goType.convertedProblem(object)
    if (problem !== undefined) throw invalidPatch(goText(request.body), problem)
    return
  }
  const problem = yield* goType.jsonProblem(object)
  if (problem === undefined) return
  yield
  if (source !== 'body') throw invalidPatch(yield* writingStableText(object), problem)
  throw badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${problem}`)
}

function reportUnknownFields(context: RequestContext, unknown: readonly string[], source: Source, patchedText: string): void {
  const { body, duplicates = [], fieldPaths } = context.request
  if (unknown.length + duplicates.length === 0 || context.options.fieldValidation === 'Ignore') return
  // Upstream: the decoder of built-in kinds reports unknown and duplicate fields in the order of the body.
  const isOrdered = context.info.builtin && source === 'body'
  // Upstream: only the JSON decoder limits the number of errors. Custom resources and results of strategic merge patches have other
  // decoders.
  const { patchType } = context.request
  const isBounded = context.info.builtin && (source === 'body' || patchType !== 'application/strategic-merge-patch+json')
  const fields = isOrdered ? inBodyOrder(unknown, body) : unknown
  const texts =
    isOrdered && fieldPaths
      ? problemsInBodyOrder(unknown, fieldPaths)
      : [...duplicates.slice(0, MaxStrictErrors), ...(isBounded ? fields.slice(0, MaxStrictErrors) : fields).map(unknownField)]
  if (context.options.fieldValidation !== 'Strict') {
    appendAll(context.warnings, texts)
    return
  }
  throw strictError(context.info, texts, source, patchedText)
}

/**
 * Sets the namespace of a namespaced object if it is missing, and deletes the namespace of a cluster-scoped object.
 *
 * @throws StatusError BadRequest when the name or the namespace is not that of the request
 */
export function setNamespaceAndCheckKey({ info, request }: RequestContext, { metadata }: UnknownObject): void {
  if (info.namespaced) {
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
