/** POST serviceaccounts/x/token: a token that says one is this service account. Upstream: pkg/registry/core/serviceaccount/storage. */
import {
  badRequest,
  conflict,
  invalidObject,
  isRecord,
  type KubeObject,
  parseApiVersion,
  type ServiceAccount,
  timestamp,
  type TokenRequest,
  type UnknownObject,
} from '@capstan/kube'
import type { BoundObject, TokenOrder } from '../auth/service-account-tokens.ts'
import { tokenRequest } from '../registry/builtin.ts'
import { decode, draftOf } from './decode.ts'
import { type Call, keyFor, type Plane, stored } from './plane.ts'

/** @throws StatusError NotFound, BadRequest, Invalid or Conflict */
export function issueToken(plane: Plane, call: Call): KubeObject {
  const { request, definition } = call
  const account = stored(plane, definition, keyFor(definition, request.namespace, request.name!)) as ServiceAccount
  const body = draftOf(tokenRequest, request.body)
  // Whoever asks need not say again what the path says.
  if (!isRecord(body.metadata)) body.metadata = {}
  ;(body.metadata as { name?: unknown }).name ??= request.name
  const object = decode({ ...call, definition: tokenRequest }, body, 'body') as UnknownObject & TokenRequest
  delete object.status
  const errors = [
    ...tokenRequest.structural.validate(object, undefined),
    ...(tokenRequest.validate?.(object, undefined, { subresource: 'token' }) ?? []),
  ]
  if (errors.length > 0) throw invalidObject(tokenRequest, '', errors)

  const { spec } = object
  const audiences = spec.audiences?.length ? spec.audiences : [...plane.apiAudiences]
  const expirationSeconds = spec.expirationSeconds!
  const { token, expires } = plane.tokens.issue(account, {
    audiences,
    expirationSeconds,
    ...(spec.boundObjectRef ? bindingOf(plane, account, spec.boundObjectRef) : {}),
  })
  return {
    ...object,
    metadata: { ...object.metadata, creationTimestamp: timestamp(plane.clock.now()) },
    spec: { ...spec, audiences, expirationSeconds, ...(spec.boundObjectRef ? {} : { boundObjectRef: null }) },
    status: { token, expirationTimestamp: timestamp(expires) },
  } as KubeObject
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
