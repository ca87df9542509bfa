/** POST serviceaccounts/x/token: issues a token of the service account. Upstream: pkg/registry/core/serviceaccount/storage. */
import {
  badRequest,
  conflict,
  invalid,
  invalidObject,
  isRecord,
  type KubeObject,
  listInPieces,
  parseApiVersion,
  seconds,
  type ServiceAccount,
  timestamp,
  type TokenRequest,
  type UnknownObject,
} from '@capstan/kube'
import type { BoundObject, TokenContents } from '../auth/service-account-tokens.ts'
import { tokenRequest } from '../builtin-resources.ts'
import { kindState } from '../kind-state.ts'
import {
  decode,
  draftOf,
  trackFields,
  type RequestContext,
  keyFor,
  type ServerContext,
  stored,
  writeContext,
} from '@capstan/apiserver/kinds'

/** Issues a token; returns the TokenRequest with the token in its status. @throws StatusError NotFound, BadRequest, Invalid or Conflict */
export async function issueToken(server: ServerContext, context: RequestContext): Promise<KubeObject> {
  const { request, info, warnings } = context
  const body = draftOf(tokenRequest, request.body)
  const tokenContext: RequestContext = { ...context, info: tokenRequest }
  const object = decode(tokenContext, withNameFromPath(body, request.name!), 'body') as UnknownObject & TokenRequest
  delete object.status
  const account = stored(server, info, keyFor(info, request.namespace, request.name!)) as ServiceAccount
  const { uid } = account.metadata
  if (object.metadata.uid !== undefined && object.metadata.uid !== uid) {
    const problem = `the UID in the token request (${object.metadata.uid}) does not match the UID of the service account (${uid})`
    throw conflict({ group: tokenRequest.group, plural: tokenRequest.kind }, request.name!, problem)
  }
  const errors = [
    ...tokenRequest.structural.validate(object, undefined),
    ...(await listInPieces(
      server.clock,
      tokenRequest.strategy.validate?.(object, undefined, writeContext(server, context)) ?? [],
    )),
  ]
  if (errors.length > 0) throw invalidObject(tokenRequest, '', errors)

  const now = server.clock.now()
  const tracked = (await trackFields(server, tokenContext, object, undefined)) as typeof object
  const { spec } = tracked
  spec.audiences = spec.audiences?.length ? spec.audiences : [...server.apiAudiences]
  const binding = spec.boundObjectRef ? bindingOf(server, account, spec.boundObjectRef) : {}
  const { tokens } = kindState(server)
  const { maxExpirationSeconds: limit, extendExpiration } = tokens
  if (limit !== undefined && spec.expirationSeconds! > limit) {
    warnings.push(`requested expiration of ${spec.expirationSeconds} seconds shortened to ${limit} seconds`)
    spec.expirationSeconds = limit
  }
  const expirationSeconds = spec.expirationSeconds!
  const isExtended =
    extendExpiration &&
    binding.bound?.kind === 'Pod' &&
    expirationSeconds === PodExpirationSeconds &&
    spec.audiences.every((audience) => server.apiAudiences.includes(audience))
  const token = tokens.issue(account, {
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

/**
 * Expiration that pods request by default. Upstream recognizes their requests by this number, and extends their tokens to a year, because
 * older client libraries do not renew tokens.
 */
const PodExpirationSeconds = 3607
const ExtendedExpirationSeconds = 365 * 24 * 60 * 60

/** Adds the name from the URL path to the body if its metadata has no name. @throws StatusError Invalid for a different name */
function withNameFromPath(body: { [field: string]: unknown }, name: string): { [field: string]: unknown } {
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

function bindingOf(server: ServerContext, account: ServiceAccount, reference: Bound): Pick<TokenContents, 'bound' | 'node'> {
  const { kind = '', apiVersion = '', name = '', uid } = reference
  const { group, version } = parseApiVersion(apiVersion)
  if (group !== '' || !isBindable(kind)) throw badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${kind}`)
  const info = server.registry.find('', 'v1', plurals[kind])!
  const object = stored(server, info, keyFor(info, account.metadata.namespace, name)) as UnknownObject
  const { serviceAccountName, nodeName } = (object.spec ?? {}) as { serviceAccountName?: string; nodeName?: string }
  if (kind === 'Pod' && (serviceAccountName ?? '') !== account.metadata.name) {
    const accountName = JSON.stringify(account.metadata.name)
    throw badRequest(`cannot bind token for serviceaccount ${accountName} to pod running with different serviceaccount name.`)
  }
  if (uid && uid !== object.metadata.uid) {
    throw conflict(
      { group, plural: kind },
      name,
      `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    )
  }
  const bound = { kind, name, uid: object.metadata.uid }
  return kind === 'Pod' && nodeName ? { bound, node: nodeOf(server, nodeName) } : { bound }
}

const isBindable = (kind: string): kind is BoundObject['kind'] => Object.hasOwn(plurals, kind)

function nodeOf({ store }: ServerContext, name: string): NonNullable<TokenContents['node']> {
  const node = store.get({ resource: 'nodes', namespace: '', name })
  return node ? { name, uid: node.metadata.uid } : { name }
}
