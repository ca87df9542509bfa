/** One commit per pass: what a pass decided on its draft, sent as at most two patches. Upstream: util/patch, v1.14. */
import type { Client, Condition, JsonObject, Kind, KubeObject } from '@capstan/kube'
import { diffMerge, equal, isDeleting, isReason, isRecord, keyOf, legacyConditionsOf } from '@capstan/kube'

export interface CommitOptions {
  /** Condition types that this controller owns: its word wins over what another writer may have put there meanwhile. */
  readonly conditions: readonly string[]
  /** The same for conditions in the form of v1beta1, under `status.deprecated`. */
  readonly legacyConditions?: readonly string[]
  readonly signal?: AbortSignal
}

/** How often conditions are merged anew when somebody else writes status at the same time. */
const Attempts = 5

type WithStatus = KubeObject & { status?: { conditions?: Condition[]; [field: string]: unknown } }

/** Lists in status that several controllers write: a merge patch replaces them whole, so they are merged here, by type. */
interface Lists {
  readonly conditions: readonly Typed[]
  readonly legacy: readonly Typed[]
}
type Typed = { readonly type: string }

/**
 * Writes what one pass decided. `before` is the object as the pass first read it, `after` the private draft it worked on. At most
 * two patches are sent, each only when something changed: metadata and spec; and status, under an optimistic lock when conditions
 * are part of it, merged three-way per type. Returns the object as last answered, or `before` when nothing changed.
 *
 * Status goes first when a finalizer is taken away, because nothing can be written after that.
 */
export async function commitChanges<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  before: T,
  after: T,
  options: CommitOptions,
): Promise<T> {
  const signal = options.signal ? { signal: options.signal } : {}
  let latest = before

  const commitMain = async () => {
    latest = await commitMetadataAndSpec(client, kind, latest, before, after, options)
  }
  const commitStatus = async () => {
    const status = diffMerge(statusPart(before), statusPart(after))
    if (!equal(listsOf(before), listsOf(after))) {
      latest = await commitConditions(client, kind, latest, before, after, status, options)
    } else if (status) {
      latest = await client.patch(kind, keyOf(before), { type: 'merge', body: { status } }, { subresource: 'status', ...signal })
    }
  }

  const releases = (before.metadata.finalizers?.length ?? 0) > (after.metadata.finalizers?.length ?? 0)
  try {
    if (releases) {
      await commitStatus()
      await commitMain()
    } else {
      await commitMain()
      await commitStatus()
    }
  } catch (err) {
    // The cache did not know yet that the last finalizer has gone. What is left to say nobody would read.
    if (!isDeleting(before) || !isReason(err, 'NotFound')) throw err
  }
  return latest
}

/**
 * Finalizers and owners are lists that others write too, and a merge patch replaces them whole: what this pass added and took away
 * is done to the list as it is now, under an optimistic lock. One that somebody has taken away meanwhile does not come back.
 */
async function commitMetadataAndSpec<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  start: T,
  before: T,
  after: T,
  { signal }: CommitOptions,
): Promise<T> {
  const more = signal ? { signal } : {}
  const change = diffMerge(withoutLists(mainPart(before)), withoutLists(mainPart(after)))
  const lists = SharedLists.filter((list) => !equal(before.metadata[list] ?? [], after.metadata[list] ?? []))
  let latest = start
  for (let attempt = 1; ; attempt++) {
    const metadata: Record<string, unknown> = {}
    for (const list of lists) {
      const now: readonly unknown[] = latest.metadata[list] ?? []
      const merged = mergeItems(now, before.metadata[list] ?? [], after.metadata[list] ?? [])
      if (!equal(now, merged)) metadata[list] = merged.length === 0 ? null : merged
    }
    const isLocked = Object.keys(metadata).length > 0
    if (!change && !isLocked) return latest
    if (isLocked) metadata.resourceVersion = latest.metadata.resourceVersion
    const body = { ...change, metadata: { ...(change?.metadata as object | undefined), ...metadata } }
    try {
      return await client.patch(kind, keyOf(before), { type: 'merge', body }, more)
    } catch (err) {
      if (!isReason(err, 'Conflict') || attempt === Attempts) throw err
      const now = await client.get(kind, keyOf(before), more)
      if (now.metadata.uid !== before.metadata.uid) throw err
      latest = now
    }
  }
}

const SharedLists = ['finalizers', 'ownerReferences'] as const

/** `now`, without what the pass took away and with what it put in. */
function mergeItems(now: readonly unknown[], before: readonly unknown[], after: readonly unknown[]): unknown[] {
  const has = (list: readonly unknown[], item: unknown) => list.some((other) => equal(other, item))
  const kept = now.filter((item) => !has(before, item) || has(after, item))
  return [...kept, ...after.filter((item) => !has(before, item) && !has(kept, item))]
}

const withoutLists = ({ metadata, ...rest }: Record<string, unknown>): Record<string, unknown> => {
  const { finalizers: _finalizers, ownerReferences: _owners, ...others } = metadata as Record<string, unknown>
  return { ...rest, metadata: others }
}

async function commitConditions<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  start: T,
  before: T,
  after: T,
  status: JsonObject | undefined,
  { conditions: owned, legacyConditions: ownedLegacy = [], signal }: CommitOptions,
): Promise<T> {
  const more = signal ? { signal } : {}
  const [was, wanted] = [listsOf(before), listsOf(after)]
  let latest = start
  for (let attempt = 1; ; attempt++) {
    const there = listsOf(latest)
    const merged: Lists = {
      conditions: mergeConditions(there.conditions, was.conditions, wanted.conditions, owned),
      legacy: mergeConditions(there.legacy, was.legacy, wanted.legacy, ownedLegacy),
    }
    const changed = !equal(merged, there)
    if (!changed && !status) return latest
    const metadata = { resourceVersion: latest.metadata.resourceVersion }
    const body = changed ? { metadata, status: withLists(status, merged, there) } : { status }
    try {
      return await client.patch(kind, keyOf(before), { type: 'merge', body }, { subresource: 'status', ...more })
    } catch (err) {
      if (!isReason(err, 'Conflict') || attempt === Attempts) throw err
      const now = await client.get(kind, keyOf(before), more)
      if (now.metadata.uid !== before.metadata.uid) throw err
      latest = now
    }
  }
}

/** The patch of status with those lists in it that differ from what is there. */
function withLists(status: JsonObject = {}, merged: Lists, there: Lists): object {
  const conditions = equal(merged.conditions, there.conditions) ? {} : { conditions: merged.conditions }
  if (equal(merged.legacy, there.legacy)) return { ...status, ...conditions }
  const deprecated = isRecord(status.deprecated) ? status.deprecated : {}
  const v1beta1 = isRecord(deprecated.v1beta1) ? deprecated.v1beta1 : {}
  return { ...status, ...conditions, deprecated: { ...deprecated, v1beta1: { ...v1beta1, conditions: merged.legacy } } }
}

/** Takes over every owned type from `wanted`, and others only where this pass changed them. Keeps `wanted`'s order. */
function mergeConditions(
  latest: readonly Typed[],
  was: readonly Typed[],
  wanted: readonly Typed[],
  owned: readonly string[],
): Typed[] {
  const find = (list: readonly Typed[], type: string) => list.find((condition) => condition.type === type)
  const merged: Typed[] = []
  for (const condition of wanted) {
    const theirs = find(latest, condition.type)
    const mine = owned.includes(condition.type) || !equal(find(was, condition.type), condition)
    if (mine) merged.push(condition)
    else if (theirs) merged.push(theirs)
  }
  for (const condition of latest) {
    const dropped = find(was, condition.type) !== undefined || owned.includes(condition.type)
    if (!find(wanted, condition.type) && !dropped) merged.push(condition)
  }
  return merged
}

const listsOf = (object: KubeObject): Lists => ({
  conditions: (object as WithStatus).status?.conditions ?? [],
  legacy: legacyConditionsOf(object as WithStatus),
})

/** What the main path of an object takes: everything but status and what the server alone writes. */
function mainPart(object: KubeObject): Record<string, unknown> {
  const { status: _, apiVersion: _v, kind: _k, ...rest } = object as WithStatus
  const { labels, annotations, ownerReferences, finalizers } = object.metadata
  return { ...rest, metadata: { labels, annotations, ownerReferences, finalizers } }
}

/** Status without the lists that are merged. */
function statusPart(object: KubeObject): Record<string, unknown> {
  const { conditions: _, deprecated, ...rest } = (object as WithStatus).status ?? {}
  const v1beta1 = isRecord(deprecated) && isRecord(deprecated.v1beta1) ? deprecated.v1beta1 : {}
  const { conditions: _legacy, ...fields } = v1beta1
  return Object.keys(fields).length === 0 ? rest : { ...rest, deprecated: { v1beta1: fields } }
}
