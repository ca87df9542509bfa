/**
 * What every change of a stored object goes through: `change` makes a draft of the object as it is now, the rest is the same for
 * PUT, patches and subresources. When somebody else wrote meanwhile, all of it happens again on what they left behind, so no
 * update is lost; a client that must not build upon theirs says so with a resourceVersion.
 */
import {
  conflict,
  equal,
  freeze,
  invalidObject,
  invalid,
  keepTimes,
  type KubeObject,
  resourceName,
  StatusError,
  type UnknownObject,
} from '@capstan/kube'
import { type Definition, storageApiVersion } from '../registry/definition.ts'
import { StoreConflict, type StoreKey } from '../store/store.ts'
import { mutate, validate } from './admit.ts'
import type { AdmissionView } from './ask-webhooks.ts'
import { requireRights } from './grants.ts'
import { trackFields } from './managed-fields.ts'
import { dropDuplicateOwners } from './metadata.ts'
import { type Call, keyFor, type Plane, stored, writeContext } from './plane.ts'
import { toStore } from './to-store.ts'

export interface Change {
  /** The object as the client wants it, decoded: a draft that is not shared. */
  apply(current: UnknownObject): UnknownObject | Promise<UnknownObject>
  /** PUT names what it replaces; a patch changes what it finds. */
  readonly replaces: boolean
  /** Records ownership; the default is that of an update. */
  track?(object: UnknownObject, current: UnknownObject): UnknownObject
  /** What webhooks see of the write, where that is not the object itself. */
  readonly view?: AdmissionView
}

export async function modify(plane: Plane, call: Call, change: Change): Promise<KubeObject> {
  const { definition, request } = call
  const key = keyFor(definition, request.namespace, request.name!)
  for (;;) {
    const current = stored(plane, definition, key)
    const warned = call.warnings.length
    try {
      return await attempt(plane, call, change, key, current)
    } catch (err) {
      if (!(err instanceof StoreConflict)) throw err
      call.warnings.length = warned
    }
  }
}

async function attempt(plane: Plane, call: Call, change: Change, key: StoreKey, current: KubeObject): Promise<KubeObject> {
  const { definition, options, request, warnings } = call
  const old = await plane.converter.show(definition, current as UnknownObject)
  const sent = await change.apply(old)
  checkRevision(call, sent, old, change.replaces)
  keepSystemFields(sent, old)
  keepOtherParts(definition, request.subresource, sent, old)
  warnings.push(...dropDuplicateOwners(sent))

  const tracked = change.track ? change.track(sent, old) : await trackFields(plane, call, sent, old)
  const object = await mutate(plane, call, tracked, old, change.view)
  if (object !== tracked) {
    // Webhooks have no more say in these than clients.
    keepSystemFields(object, old)
    keepOtherParts(definition, request.subresource, object, old)
  }
  requireRights(plane, call, object, old)
  try {
    definition.prepare?.(object, old, writeContext(plane, call))
    countGeneration(definition, request.subresource, object, old)
    await validate(plane, call, object, old, change.view)

    // A write that changes nothing still brings what is stored into the version in which things are stored now.
    if (keepTimes(old, object) && current.apiVersion === storageApiVersion(definition)) return old
    const gone = isDone(object)
    if (options.dryRun) return freeze(object)
    const next = gone ? undefined : await toStore(plane, call, object)
    const { object: written } = await plane.store.commit({ key, previous: current, object: next })
    return gone ? freeze(object) : plane.converter.show(definition, written!)
  } finally {
    plane.pending.delete(object)
  }
}

function checkRevision(call: Call, sent: UnknownObject, old: UnknownObject, replaces: boolean): void {
  const { definition, request } = call
  const { resourceVersion, uid } = sent.metadata
  const { name } = old.metadata
  if (replaces && uid !== undefined && uid !== old.metadata.uid) throw otherUid(call, old.metadata, uid)
  if (resourceVersion === undefined || resourceVersion === '0') {
    // Upstream: custom resources cannot be written blindly, nor made so by a patch.
    const isWhole = replaces || (request.patchType !== undefined && request.patchType !== 'application/apply-patch+yaml')
    if (definition.builtin || !isWhole) return
    const resource = { group: definition.group, kind: definition.plural }
    throw invalidObject(resource, name, [invalid('metadata.resourceVersion', 0, 'must be specified for an update')])
  }
  if (!/^\d+$/.test(resourceVersion)) {
    throw new StatusError('', `strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`)
  }
  if (resourceVersion !== old.metadata.resourceVersion) throw conflict(definition, name)
}

/** A uid says which object is meant, and it is another one that is there; or none, which has no uid. */
export function otherUid(
  { definition, options }: Call,
  { name, namespace = '', uid: found = '' }: Partial<KubeObject['metadata']> & { name: string },
  uid: string,
): StatusError {
  // Upstream: what is only tried out does not name the prefix of its store; built-in kinds have no groups there.
  const place = [options.dryRun ? '' : '/registry', ...(definition.builtin ? [] : [definition.group])]
  place.push(storagePlaces[resourceName(definition)] ?? definition.plural)
  if (definition.namespaced) place.push(namespace)
  const text = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${found}`
  const key = [...place, name].join('/')
  return conflict(
    definition,
    name,
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${text}`,
  )
}

/** Where upstream keeps what it does not keep under its plural, or keeps under its group all the same. */
const storagePlaces: { readonly [resource: string]: string } = {
  services: 'services/specs',
  endpoints: 'services/endpoints',
  nodes: 'minions',
  replicationcontrollers: 'controllers',
  'ingresses.networking.k8s.io': 'ingress',
  'customresourcedefinitions.apiextensions.k8s.io': 'apiextensions.k8s.io/customresourcedefinitions',
  'apiservices.apiregistration.k8s.io': 'apiregistration.k8s.io/apiservices',
}

/** What the server alone decides stays as it is; what a client may not even try to change is left for validation to refuse. */
function keepSystemFields({ metadata }: UnknownObject, { metadata: old }: UnknownObject): void {
  metadata.resourceVersion = old.resourceVersion
  metadata.creationTimestamp = old.creationTimestamp
  metadata.uid ??= old.uid
  for (const field of ['generation', 'selfLink'] as const) copyField(metadata, old, field)
  for (const field of ['deletionTimestamp', 'deletionGracePeriodSeconds'] as const) {
    if (metadata[field] === undefined) copyField(metadata, old, field)
  }
}

function copyField<T extends object, K extends keyof T>(to: T, from: T, field: K): void {
  if (from[field] === undefined) delete to[field]
  else to[field] = from[field]
}

/** The main path cannot write status, and `/status` nothing but status. */
function keepOtherParts(
  definition: Definition,
  subresource: string | undefined,
  object: UnknownObject,
  old: UnknownObject,
): void {
  const writes = subresource === undefined ? undefined : definition.writes?.[subresource]
  if (writes) return writes(object, old)
  if (!definition.statusSubresource) return
  if (subresource === 'status') {
    for (const part of new Set([...Object.keys(object), ...Object.keys(old)])) {
      if (part !== 'status' && part !== 'metadata') copyField(object, old, part)
    }
    // Built-in kinds take labels and annotations on /status, custom resources take nothing.
    if (!definition.builtin) {
      const { managedFields } = object.metadata
      object.metadata = { ...old.metadata, ...(managedFields ? { managedFields } : {}) }
    }
  } else copyField(object, old, 'status')
}

function countGeneration(
  definition: Definition,
  subresource: string | undefined,
  object: UnknownObject,
  old: UnknownObject,
): void {
  if (!definition.generation) return
  const parts = new Set([...Object.keys(object), ...Object.keys(old)])
  parts.delete('metadata')
  if (definition.statusSubresource) parts.delete('status')
  const changed =
    [...parts].some((part) => !equal(object[part], old[part])) ||
    (typeof definition.generation === 'function' && subresource !== 'status' && definition.generation(object, old))
  object.metadata.generation = (old.metadata.generation ?? 0) + (changed ? 1 : 0)
}

/** Nothing holds the object any more, and its deletion has been asked for. */
export function isDone(object: UnknownObject): boolean {
  const { deletionTimestamp, finalizers = [], deletionGracePeriodSeconds = 0 } = object.metadata
  if (deletionTimestamp === undefined || finalizers.length > 0 || deletionGracePeriodSeconds > 0) return false
  if (object.kind !== 'Namespace' || object.apiVersion !== 'v1') return true
  return ((object.spec as { finalizers?: string[] } | undefined)?.finalizers ?? []).length === 0
}
