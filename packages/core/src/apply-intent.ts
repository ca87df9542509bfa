/**
 * Server-side apply of one controller's intent for an object: all fields that the controller sets on it. For an existing object, the
 * request is sent only when the object differs from the intent, or when its managedFields show that the controller's field manager does not
 * own exactly the fields of the intent. Upstream: internal/util/ssa, v1.14, which caches requests instead. See docs/adr/0033-server-side-apply-of-sets.md.
 */
import type { ReconcileContext } from '@capstan/controller'
import {
  equal,
  type Input,
  isReason,
  isRecord,
  type Kind,
  keyOf,
  type KubeObject,
  type ManagedFieldsEntry,
  messageOf,
  readJSON,
  timestamp,
  writeJSON,
} from '@capstan/kube'

type ApplyIO = Pick<ReconcileContext, 'client' | 'clock' | 'signal'>

export interface IntentOptions {
  /**
   * Whether the request includes empty labels and annotations, so that the manager owns them, as in upstream's requests for provider
   * objects. Default: false.
   */
  readonly ownsEmpty?: boolean
}

/**
 * Creates the object or updates it to the intent. Removes fields that the manager owned and that the intent no longer contains. Returns
 * `existing` when nothing differs, or when a request to update it fails with NotFound. If the object was deleted meanwhile, the repair of its
 * managedFields fails with NotFound, and the apply with Conflict.
 * @throws Error with upstream's text, caused by the API server's error
 */
export async function applyIntent<T extends KubeObject>(
  io: ApplyIO,
  kind: Kind<T>,
  existing: T | undefined,
  intent: Input<T>,
  manager: string,
  { ownsEmpty = false }: IntentOptions = {},
): Promise<T> {
  const { client, signal } = io
  const sent = ownsEmpty ? intent : withoutEmptyMetadata(intent)
  const applyError = (err: unknown) => new Error(`failed to apply ${kind.kind}: ${messageOf(err)}`, { cause: err })
  if (!existing) {
    return client.apply(kind, sent, { fieldManager: manager, force: true, signal }).catch((err: unknown) => {
      throw applyError(err)
    })
  }
  if (isApplied(existing, intent, manager, { ownsEmpty })) return existing
  try {
    return await applyToExisting(io, kind, existing, sent, manager)
  } catch (err) {
    if (isReason(err, 'NotFound')) return existing
    throw applyError(err)
  }
}

/**
 * Repairs the managedFields of an existing object, and applies the intent to it. If the object was deleted meanwhile, the uid in the request
 * prevents the creation of a new object. @throws StatusError Conflict or NotFound when the object was deleted
 */
export async function applyToExisting<T extends KubeObject>(
  io: ApplyIO,
  kind: Kind<T>,
  existing: KubeObject,
  intent: Input<T>,
  manager: string,
): Promise<T> {
  await repairManagedFields(io, kind, existing, manager)
  return io.client.apply(kind, withUid(intent, existing), { fieldManager: manager, force: true, signal: io.signal })
}

const withUid = <T extends KubeObject>(intent: Input<T>, { metadata: { uid } }: KubeObject): Input<T> => ({
  ...intent,
  metadata: { ...intent.metadata, uid },
})

/** Returns whether the manager has applied exactly this intent and the object still has all of it. Pure. */
export function isApplied(
  object: KubeObject,
  intent: Input<KubeObject>,
  manager: string,
  { ownsEmpty = false }: IntentOptions = {},
): boolean {
  const entries = (object.metadata.managedFields ?? []).filter((entry) => entry.manager === manager && !entry.subresource)
  const [entry] = entries
  if (!entry || entries.length > 1 || entry.operation !== 'Apply') return false
  const { labels, annotations, finalizers, ownerReferences } = intent.metadata
  const { apiVersion: _a, kind: _k, metadata: _m, ...fields } = intent
  const metadata = withoutEmpty({ labels, annotations, finalizers, ownerReferences })
  const intended = withoutAbsent({ ...(isEmpty(metadata) ? {} : { metadata }), ...fields })
  // An API server may drop the ownership of an empty map. Comparing the ownership would then apply the intent in every reconcile.
  const owned = ownsEmpty ? withoutEmptyMaps(entry.fieldsV1, { labels, annotations }) : entry.fieldsV1
  return hasExactly(object, intended, owned)
}

/** Drops the ownership of labels and annotations that have no members in `fieldsV1` and are empty in `intended`. */
function withoutEmptyMaps(fieldsV1: { readonly [field: string]: unknown }, intended: object): object {
  const metadata = fieldsV1['f:metadata']
  if (!isRecord(metadata)) return fieldsV1
  const isKept = ([field, owned]: readonly [string, unknown]) =>
    !(isEmpty(owned) && isEmpty((intended as { [name: string]: unknown })[field.slice('f:'.length)]))
  const nonEmpty = Object.fromEntries(Object.entries(metadata).filter(isKept))
  return { ...fieldsV1, 'f:metadata': nonEmpty }
}

/**
 * Whether the value `current` of an object has all of `intended`, and whether the manager owns exactly the fields of `intended`. A value
 * is owned as a whole if its entry in `fields` (fieldsV1) has no children.
 */
function hasExactly(current: unknown, intended: unknown, fields: unknown): boolean {
  if (!isRecord(fields)) return false
  const owned = Object.keys(fields).filter((element) => element !== '.')
  if (owned.length === 0) return isSameAtomic(current, intended)
  if (Array.isArray(intended)) return Array.isArray(current) && hasExactItems(current, intended, fields, owned)
  if (!isRecord(intended) || !isRecord(current)) return false
  const names = Object.keys(intended)
  return names.length === owned.length && names.every((name) => hasExactly(current[name], intended[name], fields[`f:${name}`]))
}

/**
 * `hasExactly` for the items of a set or of a keyed list, which must also be in the intended order. Items of other managers may be between
 * them. An item of a set is owned as a whole.
 */
function hasExactItems(
  current: readonly unknown[],
  intended: readonly unknown[],
  fields: { readonly [element: string]: unknown },
  owned: readonly string[],
): boolean {
  if (intended.length !== owned.length) return false
  let previous = -1
  return intended.every((item) => {
    const element = owned.find((candidate) => isElement(item, candidate))
    if (element === undefined) return false
    const index = current.findIndex((candidate) => isElement(candidate, element))
    const isInOrder = index > previous
    previous = index
    return isInOrder && (isRecord(item) ? hasExactly(current[index], item, fields[element]) : true)
  })
}

/**
 * Whether a value that is owned as a whole is the intended value. The items of a list may also have fields that the API server has defaulted.
 * A map that is empty in the intent may have members of other managers.
 */
function isSameAtomic(current: unknown, intended: unknown): boolean {
  const isPart = Array.isArray(intended) || (isRecord(intended) && isEmpty(intended))
  return isPart ? contains(current, intended) : equal(current, intended)
}

/** Whether `current` has every value of `intended`. Lists must have equally many items, in the same order. */
function contains(current: unknown, intended: unknown): boolean {
  if (isRecord(intended)) {
    return isRecord(current) && Object.entries(intended).every(([name, value]) => contains(current[name], value))
  }
  if (!Array.isArray(intended)) return equal(current, intended)
  return (
    Array.isArray(current) &&
    current.length === intended.length &&
    intended.every((item, index) => contains(current[index], item))
  )
}

function isElement(item: unknown, element: string): boolean {
  if (element.startsWith('v:')) return element.slice('v:'.length) === writeJSON(item)
  if (!element.startsWith('k:')) return false
  const key = readJSON(element.slice('k:'.length))
  return isRecord(item) && isRecord(key) && Object.entries(key).every(([name, value]) => equal(item[name], value))
}

/**
 * Drops empty members of the metadata, such as labels, as Go's JSON encoding does. Otherwise the manager would own the empty member, which
 * `isApplied` does not accept without `ownsEmpty`, and every reconcile would apply the intent again.
 */
function withoutEmptyMetadata<T extends KubeObject>(intent: Input<T>): Input<T> {
  const { metadata } = intent as { metadata: object }
  return { ...intent, metadata: withoutEmpty(metadata) } as Input<T>
}

/** Drops absent members. */
function withoutAbsent(value: unknown): unknown {
  if (!isRecord(value)) return value
  const entries = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(entries.map(([name, member]) => [name, withoutAbsent(member)]))
}

/** Drops absent and empty members. */
function withoutEmpty(value: unknown): unknown {
  if (!isRecord(value)) return value
  const entries = Object.entries(value).map(([name, member]) => [name, withoutEmpty(member)] as const)
  return Object.fromEntries(entries.filter(([, member]) => member !== undefined && !isEmpty(member)))
}

const isEmpty = (value: unknown): boolean =>
  (Array.isArray(value) && value.length === 0) || (isRecord(value) && Object.keys(value).length === 0)

/**
 * Converts the manager's `Update` entry, which earlier versions of Capstan wrote, to an `Apply` entry, or removes it if there is an `Apply`
 * entry. With an `Update` entry, apply would not remove the fields that the intent drops. Also removes `before-first-apply` entries, which would keep every
 * field. After such a removal, and when the object has no managedFields, the manager gets an `Apply` entry if it has none, so that the API
 * server does not add `before-first-apply`.
 */
async function repairManagedFields(io: ApplyIO, kind: Kind, object: KubeObject, manager: string): Promise<void> {
  const entries = object.metadata.managedFields ?? []
  const repaired = repairedEntries(entries, manager, { apiVersion: object.apiVersion, time: timestamp(io.clock.now()) })
  if (repaired) await writeManagedFields(io, kind, object, repaired)
}

/** Returns the repaired entries, or `undefined` when they need no repair. A new entry of the manager gets `versionAndTime`. Pure. */
export function repairedEntries(
  entries: readonly ManagedFieldsEntry[],
  manager: string,
  versionAndTime: Pick<ManagedFieldsEntry, 'apiVersion' | 'time'>,
): ManagedFieldsEntry[] | undefined {
  const isOwn = ({ manager: name, subresource }: ManagedFieldsEntry) => name === manager && !subresource
  const isWrong = (entry: ManagedFieldsEntry) =>
    entry.manager === 'before-first-apply' || (isOwn(entry) && entry.operation !== 'Apply')
  if (entries.length > 0 && !entries.some(isWrong)) return undefined
  const correct = entries.filter((entry) => !isWrong(entry))
  if (correct.some(isOwn)) return correct
  const updated = entries.find((entry) => isOwn(entry))
  const fieldsV1 = updated?.fieldsV1 ?? { 'f:metadata': { 'f:name': {} } }
  return [...correct, { ...versionAndTime, manager, operation: 'Apply', fieldsType: 'FieldsV1', fieldsV1 } as ManagedFieldsEntry]
}

/** Maximum number of attempts to write managed fields. Upstream: RemoveManagedFieldsForLabelsAndAnnotations. */
const MaxAttempts = 3

/**
 * Transfers the ownership of labels and annotations from the manager `from`, which created the object, to the manager `to`, which changes
 * them from then on. Afterwards `to` owns the labels and annotations in `wanted`. Upstream needs two requests for the transfer. Returns the
 * updated object, or the unchanged object if `from` owns no labels. The provider may change a new object at any moment: after a conflict,
 * this function reads the object and tries again, because `createMachine` deletes the new object when the API server rejects the transfer.
 */
export async function handOverMetadata<T extends KubeObject>(
  io: ApplyIO,
  kind: Kind<T>,
  object: T,
  managers: Managers,
  wanted: WantedMetadata,
): Promise<T> {
  let current = object
  for (let attempt = 1; ; attempt++) {
    const entries = handedOverEntries(current, managers, wanted)
    if (!entries) return current
    try {
      return await writeManagedFields(io, kind, current, entries)
    } catch (err) {
      if (!isReason(err, 'Conflict') || attempt === MaxAttempts) throw err
      current = await io.client.get(kind, keyOf(object), { signal: io.signal })
    }
  }
}

interface Managers {
  readonly from: string
  readonly to: string
}
interface WantedMetadata {
  readonly labels: object
  readonly annotations: object
}

/**
 * Returns the entries after the transfer; `undefined` when `managers.from` owns no labels. In that case `managers.from` keeps its
 * annotations, because it applied them for an in-place update. Pure.
 */
function handedOverEntries(
  { metadata: { managedFields: entries = [] } }: KubeObject,
  managers: Managers,
  wanted: WantedMetadata,
): ManagedFieldsEntry[] | undefined {
  const entry = entries.find(
    ({ manager, operation, subresource }) => manager === managers.from && operation === 'Apply' && !subresource,
  )
  const metadata = entry?.fieldsV1['f:metadata']
  if (!entry || !isRecord(metadata) || !('f:labels' in metadata)) return undefined
  const { 'f:labels': _labels, 'f:annotations': _annotations, ...remaining } = metadata
  const { 'f:metadata': _metadata, ...otherFields } = entry.fieldsV1
  const keptFields = { ...(isEmpty(remaining) ? {} : { 'f:metadata': remaining }), ...otherFields }
  const fieldsOf = (map: object) => Object.fromEntries(Object.keys(map).map((name) => [`f:${name}`, {}]))
  const transferred = { 'f:labels': fieldsOf(wanted.labels), 'f:annotations': fieldsOf(wanted.annotations) }
  const otherEntries = entries.filter(
    (candidate) => candidate !== entry && !(candidate.manager === managers.to && candidate.operation === 'Apply'),
  )
  return [
    ...otherEntries,
    { ...entry, fieldsV1: keptFields },
    { ...entry, manager: managers.to, fieldsV1: { 'f:metadata': transferred } },
  ] as ManagedFieldsEntry[]
}

function writeManagedFields<T extends KubeObject>(
  { client, signal }: ApplyIO,
  kind: Kind<T>,
  object: T,
  entries: readonly ManagedFieldsEntry[],
): Promise<T> {
  const operations = [
    { op: 'replace', path: '/metadata/managedFields', value: entries as never },
    { op: 'replace', path: '/metadata/resourceVersion', value: object.metadata.resourceVersion },
  ] as const
  return client.patch(kind, keyOf(object), { type: 'json', operations: [...operations] }, { signal })
}
