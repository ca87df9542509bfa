/** POST serviceaccounts/x/token: a token that says one is this service account. Upstream: pkg/registry/core/serviceaccount/storage. */
import {
  badRequest,
  conflict,
  invalid,
  invalidObject,
  isRecord,
  type KubeObject,
  parseApiVersion,
  seconds,
  type ServiceAccount,
  timestamp,
  type TokenRequest,
  type UnknownObject,
} from '@capstan/kube'
import type { BoundObject, TokenOrder } from '../auth/service-account-tokens.ts'
import { tokenRequest } from '../registry/builtin.ts'
import { decode, draftOf } from './decode.ts'
import { trackFields } from './managed-fields.ts'
import { type Call, keyFor, type Plane, stored, writeContext } from './plane.ts'

/** @throws StatusError NotFound, BadRequest, Invalid or Conflict */
export async function issueToken(plane: Plane, call: Call): Promise<KubeObject> {
  const { request, definition, warnings } = call
  const body = draftOf(tokenRequest, request.body)
  const asked: Call = { ...call, definition: tokenRequest }
  const object = decode(asked, named(body, request.name!), 'body') as UnknownObject & TokenRequest
  delete object.status
  const account = stored(plane, definition, keyFor(definition, request.namespace, request.name!)) as ServiceAccount
  const { uid } = account.metadata
  if (object.metadata.uid !== undefined && object.metadata.uid !== uid) {
    const why = `the UID in the token request (${object.metadata.uid}) does not match the UID of the service account (${uid})`
    throw conflict({ group: tokenRequest.group, plural: tokenRequest.kind }, request.name!, why)
  }
  const errors = [
    ...tokenRequest.structural.validate(object, undefined),
    ...(tokenRequest.validate?.(object, undefined, writeContext(plane, call)) ?? []),
  ]
  if (errors.length > 0) throw invalidObject(tokenRequest, '', errors)

  const now = plane.clock.now()
  const tracked = (await trackFields(plane, asked, object, undefined)) as typeof object
  const { spec } = tracked
  spec.audiences = spec.audiences?.length ? spec.audiences : [...plane.apiAudiences]
  const binding = spec.boundObjectRef ? bindingOf(plane, account, spec.boundObjectRef) : {}
  const { maxExpirationSeconds: limit, extendExpiration } = plane.tokens
  if (limit !== undefined && spec.expirationSeconds! > limit) {
    warnings.push(`requested expiration of ${spec.expirationSeconds} seconds shortened to ${limit} seconds`)
    spec.expirationSeconds = limit
  }
  const expirationSeconds = spec.expirationSeconds!
  const isExtended =
    extendExpiration &&
    binding.bound?.kind === 'Pod' &&
    expirationSeconds === PodExpirationSeconds &&
    spec.audiences.every((audience) => plane.apiAudiences.includes(audience))
  const token = plane.tokens.issue(account, {
    audiences: spec.audiences,
    ...binding,
    ...(isExtended
      ? { expirationSeconds: ExtendedExpirationSeconds, warnAfterSeconds: expirationSeconds }
      : { expirationSeconds }),
  })
  return {
    ...tracked,
    metadata: { ...tracked.metadata, uid, creationTimestamp: timestamp(now) },
    spec: { ...spec, ...(spec.boundObjectRef ? {} : { boundObjectRef: null }) },
    status: { token, expirationTimestamp: timestamp(now + seconds(expirationSeconds)) },
  } as KubeObject
}

/** Upstream: what pods ask for unless told otherwise is known by this number, and lives for a year while libraries learn to renew it. */
const PodExpirationSeconds = 3607
const ExtendedExpirationSeconds = 365 * 24 * 60 * 60

/** Whoever asks need not say again what the path says. @throws StatusError Invalid for a name of somebody else */
function named(body: { [field: string]: unknown }, name: string): { [field: string]: unknown } {
  if (!isRecord(body.metadata)) body.metadata = {}
  const metadata = body.metadata as { name?: unknown }
  metadata.name ||= name
  if (metadata.name === name) return body
  throw invalidObject(tokenRequest, name, [
    invalid('metadata.name', metadata.name, 'must match the service account name if specified'),
  ])
}

type Bound = NonNullable<TokenRequest['spec']['boundObjectRef']>

const plurals: { readonly [kind in BoundObject['kind']]: string } = { Pod: 'pods', Secret: 'secrets', Node: 'nodes' }

function bindingOf(plane: Plane, account: ServiceAccount, reference: Bound): Pick<TokenOrder, 'bound' | 'node'> {
  const { kind = '', apiVersion = '', name = '', uid } = reference
  const { group, version } = parseApiVersion(apiVersion)
  if (group !== '' || !isBindable(kind)) throw badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${kind}`)
  const definition = plane.registry.find('', 'v1', plurals[kind])!
  const object = stored(plane, definition, keyFor(definition, account.metadata.namespace, name)) as UnknownObject
  const { serviceAccountName, nodeName } = (object.spec ?? {}) as { serviceAccountName?: string; nodeName?: string }
  if (kind === 'Pod' && (serviceAccountName ?? '') !== account.metadata.name) {
    const of = JSON.stringify(account.metadata.name)
    throw badRequest(`cannot bind token for serviceaccount ${of} to pod running with different serviceaccount name.`)
  }
  if (uid && uid !== object.metadata.uid) {
    throw conflict(
      { group, plural: kind },
      name,
      `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    )
  }
  const bound = { kind, name, uid: object.metadata.uid }
  return kind === 'Pod' && nodeName ? { bound, node: nodeOf(plane, nodeName) } : { bound }
}

const isBindable = (kind: string): kind is BoundObject['kind'] => Object.hasOwn(plurals, kind)

function nodeOf({ store }: Plane, name: string): NonNullable<TokenOrder['node']> {
  const node = store.get({ resource: 'nodes', namespace: '', name })
  return node ? { name, uid: node.metadata.uid } : { name }
}
