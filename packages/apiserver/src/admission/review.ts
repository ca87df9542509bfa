/**
 * AdmissionReview: builds requests, decodes responses and applies their patches. Error texts are those of upstream, except some about patches.
 * Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/request and errors, v0.36.
 */
import {
  applyingJsonPatch,
  jsonTypeName,
  isRecord,
  type JsonPatchOperation,
  type KubeObject,
  knownReason,
  parseJsonPatch,
  readJSON,
  type RequestingUser,
  scanJSON,
  type Status,
  StatusError,
  type Work,
} from '@capstan/kube'
import type { Caller, User } from '../auth/user.ts'
import type { GroupVersionResource, Hook, HookType, Target } from './hook.ts'

export interface GroupVersionKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

/** Attributes of a write in the version that a rule of one webhook or policy matches. Upstream: admission.VersionedAttributes. */
export interface VersionedAttributes {
  readonly resource: GroupVersionResource
  readonly kind: GroupVersionKind
  readonly object: KubeObject | undefined
  readonly oldObject: KubeObject | undefined
}

/** Attributes of a write that are the same for all webhooks. Upstream: admission.Attributes. */
export interface AdmissionAttributes {
  readonly target: Target
  /** Kind of the request as the client sent it. */
  readonly kind: GroupVersionKind
  readonly name: string
  readonly dryRun: boolean
  readonly options: object
  readonly caller: Caller
}

/** Builds the AdmissionReview that one webhook receives. */
export const reviewOf = (
  { reviewVersion }: Hook,
  uid: string,
  versioned: VersionedAttributes,
  attributes: AdmissionAttributes,
): object => ({
  kind: 'AdmissionReview',
  apiVersion: `admission.k8s.io/${reviewVersion}`,
  request: {
    uid,
    ...requestOf(versioned, attributes),
    object: versioned.object ?? null,
    oldObject: versioned.oldObject ?? null,
    dryRun: attributes.dryRun,
    options: attributes.options,
  },
})

/** Builds the request without its objects: match conditions and policies read it as the variable `request`. */
export function requestOf(
  versioned: VersionedAttributes,
  attributes: AdmissionAttributes,
): { readonly [field: string]: unknown } {
  const { target, name, caller } = attributes
  const { subresource, namespace } = target
  return {
    kind: kindOf(versioned.kind),
    resource: resourceOf(versioned.resource),
    ...(subresource === undefined ? {} : { subResource: subresource }),
    requestKind: kindOf(attributes.kind),
    requestResource: resourceOf(target),
    ...(subresource === undefined ? {} : { requestSubResource: subresource }),
    ...(name === '' ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
    operation: target.operation,
    userInfo: userInfoOf(caller),
    dryRun: attributes.dryRun,
    options: attributes.options,
  }
}

/** The requesting user, as webhooks, match conditions, policies and in-process admission read it. */
export const userInfoOf = ({ name, uid, groups, extra }: User): RequestingUser => ({
  username: name,
  ...(uid === undefined ? {} : { uid }),
  groups,
  ...(extra === undefined ? {} : { extra }),
})

const resourceOf = ({ group, version, plural }: GroupVersionResource) => ({ group, version, resource: plural })
const kindOf = ({ group, version, kind }: GroupVersionKind) => ({ group, version, kind })

/** A decoded AdmissionReview response. */
export interface WebhookResponse {
  readonly warnings: readonly string[]
  /** Error for a denied write; undefined when the write is allowed. */
  readonly denial: StatusError | undefined
  readonly patch: readonly JsonPatchOperation[] | undefined
}

/**
 * Decodes the AdmissionReview that a webhook returned.
 * @throws Error describing an invalid response
 */
export function decodeResponse({ type, webhook, reviewVersion }: Hook, uid: string, document: unknown): WebhookResponse {
  const review = isRecord(document) ? document : {}
  const { response } = review
  if (!isRecord(response)) throw new Error('webhook response was absent')
  checkType(review, reviewVersion)
  if (reviewVersion === 'v1' && response.uid !== uid) {
    const receivedUID = typeof response.uid === 'string' ? response.uid : ''
    throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(receivedUID)}`)
  }
  const patch = patchOf(type, response, reviewVersion)
  const warnings = Array.isArray(response.warnings) ? response.warnings.filter((text) => typeof text === 'string') : []
  const denial = response.allowed === true ? undefined : denialOf(webhook.name, response.status)
  return { warnings, denial, patch: denial || patch === undefined ? undefined : operationsOf(patch) }
}

function checkType({ apiVersion = '', kind = '' }: { apiVersion?: unknown; kind?: unknown }, version: string): void {
  // Upstream: v1beta1 webhooks may omit apiVersion, kind, or both.
  const isOmitted = (field: unknown) => version === 'v1beta1' && field === ''
  const hasVersion = apiVersion === `admission.k8s.io/${version}` || isOmitted(apiVersion)
  if (hasVersion && (kind === 'AdmissionReview' || isOmitted(kind))) return
  const [group, receivedVersion] = String(apiVersion).includes('/') ? String(apiVersion).split('/', 2) : ['', String(apiVersion)]
  throw new Error(
    `expected webhook response of admission.k8s.io/${version}, Kind=AdmissionReview, got ${group}/${receivedVersion}, Kind=${String(kind)}`,
  )
}

function patchOf(type: HookType, { patch, patchType }: Record<string, unknown>, version: string): string | undefined {
  const hasPatch = typeof patch === 'string' && patch !== ''
  const hasType = patchType !== undefined && patchType !== null
  if (type === 'validating') {
    if (hasPatch && version === 'v1') throw new Error('validating webhook may not return response.patch')
    if (hasType && version === 'v1') throw new Error('validating webhook may not return response.patchType')
    return undefined
  }
  if (version === 'v1') {
    if (hasPatch && !hasType) throw new Error('webhook returned response.patch but not response.patchType')
    if (!hasPatch && hasType) throw new Error('webhook returned response.patchType but not response.patch')
    if (patchType === '') throw new Error('webhook returned invalid response.patchType of ""')
  }
  if (!hasPatch) return undefined
  // As upstream, the patch type of v1beta1 is not verified.
  if (version === 'v1' && patchType !== 'JSONPatch') throw new Error(`unsupported patch type ${JSON.stringify(patchType)}`)
  return Buffer.from(patch, 'base64').toString('utf8')
}

/** Error of a denial, with message, code and details of the webhook. */
class Denial extends StatusError {
  readonly #status: Status

  constructor(status: Status & { code: number; message: string }) {
    super(knownReason(status), status.message, {
      code: status.code,
      ...(status.details === undefined ? {} : { details: status.details }),
    })
    this.#status = status
  }

  /** Returns the Status with the reason of the webhook, which may be any text. */
  override get status(): Status {
    return this.#status
  }
}

function denialOf(name: string, result: unknown): StatusError {
  const status = isRecord(result) ? result : {}
  const prefix = `admission webhook ${JSON.stringify(name)} denied the request`
  const denialMessage = [status.message, status.reason].find((text): text is string => typeof text === 'string' && text !== '')
  const code = typeof status.code === 'number' && status.code >= 400 ? status.code : 400
  return new Denial({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: denialMessage === undefined ? `${prefix} without explanation` : `${prefix}: ${denialMessage}`,
    ...(typeof status.reason === 'string' && status.reason !== '' ? { reason: status.reason } : {}),
    ...(isRecord(status.details) ? { details: status.details } : {}),
    code,
  })
}

/** Error for a patch that cannot be decoded. */
export class UndecodablePatch extends Error {
  override readonly name = 'UndecodablePatch'
}

function operationsOf(text: string): readonly JsonPatchOperation[] {
  const reject = (reason: string) => new UndecodablePatch(`received undecodable patch in webhook response: ${reason}`)
  let operations: unknown
  try {
    operations = readJSON(text)
  } catch {
    throw reject(scanJSON(text).error ?? 'unexpected end of JSON input')
  }
  if (Array.isArray(operations)) return parseJsonPatch(operations)
  throw reject(`json: cannot unmarshal ${jsonTypeName(operations)} into Go value of type jsonpatch.Patch`)
}

/**
 * Applies a patch, and yields between pieces of the work. @throws StatusError InternalError when the patch does not apply, or the result is
 * not an object with metadata
 */
export function* applyingPatch(object: object, operations: readonly JsonPatchOperation[]): Work<Record<string, unknown>> {
  try {
    const result = yield* applyingJsonPatch<unknown>(object, operations)
    if (isRecord(result) && isRecord(result.metadata)) return result
  } catch (err) {
    throw internalError(patchErrorText(operations, err))
  }
  throw internalError('the patched document is not an object with metadata')
}

/**
 * Error text of a patch that does not apply: for `add`, `replace`, `remove` and `test` a text of upstream's library, otherwise our own.
 */
function patchErrorText(operations: readonly JsonPatchOperation[], err: unknown): string {
  const cause = String(((err as Error).cause as Error | undefined)?.message ?? (err as Error).message)
  const operation = operations[Number(/^operation (\d+) /.exec(cause)?.[1])]
  if (!operation || typeof operation.path !== 'string') return cause
  const { op, path } = operation
  const last = path.split('/').at(-1)
  const isLast = cause.endsWith(`there is nothing at ${JSON.stringify(last)}`)
  switch (op) {
    case 'add':
      return `add operation does not apply: doc is missing path: ${JSON.stringify(path)}: missing value`
    case 'replace':
      return `replace operation does not apply: doc is missing path: ${path}: missing value`
    case 'remove':
      return isLast
        ? `error in remove for path: '${path}': Unable to remove nonexistent key: ${last}: missing value`
        : `remove operation does not apply: doc is missing path: ${JSON.stringify(path)}: missing value`
    case 'test':
      return `testing value ${path} failed: test failed`
    case 'copy':
    case 'move':
    default:
      return cause
  }
}

export const internalError = (text: string): StatusError =>
  new StatusError('InternalError', `Internal error occurred: ${text}`, { details: { causes: [{ message: text }] } })
