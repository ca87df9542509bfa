/** Commits the changes that one reconcile made on its draft, as at most two patches. Upstream: util/patch, v1.14. */
import type { Client, Condition, JsonObject, Kind, KubeObject } from '@capstan/kube'
import {
  conflict,
  diffMerge,
  draft,
  equal,
  isDeleting,
  isReason,
  isRecord,
  keyOf,
  legacyConditionsOf,
  messageOf,
  StatusError,
} from '@capstan/kube'
import type { Cache, ReconcileContext } from './controller.ts'
import { inTurn } from './turns.ts'

export interface CommitOptions {
  /**
   * Condition types that this controller owns: its values win over concurrent changes by other writers. When this reconcile and another
   * writer have changed a condition of another type in different ways, the commit fails with a conflict.
   */
  readonly conditions: readonly string[]
  /** Owned condition types of the v1beta1 form, under `status.deprecated`. */
  readonly legacyConditions?: readonly string[]
  /**
   * Cache with the newest version of the object. A patch with an optimistic lock uses the resourceVersion of that version, so that changes
   * that this process has made or received since the reconcile began cause no conflict. A conflict costs one or two more requests.
   */
  readonly cache?: Cache
  readonly signal?: AbortSignal
}

/** Maximum number of attempts to write when there are conflicts with other writers. */
const Attempts = 5

type WithStatus = KubeObject & { status?: { conditions?: Condition[]; [field: string]: unknown } }

/** Lists in status that several controllers write. They are merged here by type, because a merge patch replaces a whole list. */
interface Lists {
  readonly conditions: readonly Typed[]
  readonly legacy: readonly Typed[]
}
type Typed = { readonly type: string }

/**
 * Writes the changes of one reconcile. `before` is the object as the reconcile first read it, `after` its private draft. Sends at most two
 * patches, each only when there are changes: one for metadata and spec, one for status. The status patch uses an optimistic lock when it
 * contains conditions, which are merged three-way by type. Returns the object from the last response. Without a change, returns `before` or
 * the newer object of the cache. If the object was being deleted and no longer exists, no error is thrown: returns `before`, the newer object
 * of the cache, or the object from the response to the first patch.
 *
 * If the API server rejects one patch for another reason than a conflict, for example because of a policy, the other patch is sent
 * nevertheless, and the error is thrown afterwards. Status is written first when a finalizer is removed, because the object may not exist
 * after that.
 */
export function commitChanges<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  before: T,
  after: T,
  options: CommitOptions,
): Promise<T> {
  return inTurn(options.cache, kind, keyOf(before), async () => {
    const signal = options.signal ? { signal: options.signal } : {}
    let latest = before

    let reported = after
    const commitMain = async () => {
      try {
        latest = await commitMetadataAndSpec(client, kind, newestOf(kind, latest, options.cache), before, after, options)
      } catch (err) {
        reported = withGeneration(after, before.metadata.generation)
        throw err
      }
    }
    const commitStatus = async () => {
      const status = diffMerge(statusPart(before), statusPart(reported))
      if (!equal(listsOf(before), listsOf(reported))) {
        latest = await commitConditions(client, kind, newestOf(kind, latest, options.cache), before, reported, status, options)
      } else if (status) {
        latest = await client.patch(
          kind,
          keyOf(before),
          { type: 'merge', body: { status } },
          { subresource: 'status', ...signal },
        )
      }
    }

    const removesFinalizer = (before.metadata.finalizers?.length ?? 0) > (after.metadata.finalizers?.length ?? 0)
    const failures: unknown[] = []
    for (const write of removesFinalizer ? [commitStatus, commitMain] : [commitMain, commitStatus]) {
      try {
        await write()
      } catch (err) {
        // The object no longer exists: its last finalizer was removed, and the cache had not received this change. Nothing is left to write.
        if (isDeleting(before) && isReason(err, 'NotFound')) break
        failures.push(err)
        if (!isRejection(err)) break
      }
    }
    if (failures.length > 1) throw new AggregateError(failures, failures.map(messageOf).join('; '))
    if (failures.length === 1) throw failures[0]
    return latest
  })
}

/** Whether the API server has rejected a patch for a reason that may not apply to the other patch, such as its content. */
const isRejection = (err: unknown): boolean =>
  err instanceof StatusError && !isReason(err, 'Conflict') && !isReason(err, 'NotFound')

/**
 * Returns the draft with `generation` instead of its own generation in each `observedGeneration` of the status. Used when the new spec was
 * not written: the draft has the generation that the API server would have assigned to the new spec.
 */
function withGeneration<T extends KubeObject>(object: T, generation: number | undefined): T {
  const changed: T & WithStatus = draft(object)
  const { status, metadata } = changed
  if (status === undefined || generation === undefined || metadata.generation === generation) return object
  for (const observer of [status, ...(status.conditions ?? [])]) {
    if (observer.observedGeneration === metadata.generation) observer.observedGeneration = generation
  }
  return changed
}

/**
 * Patches metadata after other writes of this process to the object have ended. `change` gets a version of the object, and returns the
 * metadata to patch, or `undefined` when there is no difference. It is called with `object` first, and, if it returns metadata, again
 * with the newest version that this process knows; the metadata of the second call is patched. After a conflict, `change` is called with
 * a newer version. Returns the object from the response; without a patch, the version for which `change` returned `undefined`.
 */
export async function patchMetadata<T extends KubeObject>(
  { client, cache, signal }: Pick<ReconcileContext, 'client' | 'cache' | 'signal'>,
  kind: Kind<T>,
  object: T,
  change: (newest: T) => object | undefined,
): Promise<T> {
  if (!change(object)) return object
  return inTurn(cache, kind, keyOf(object), async () => {
    const newest = newestOf(kind, object, cache)
    return retryConflicts(client, kind, newest, { cache, signal }, async (latest) => {
      const metadata = change(latest)
      return metadata
        ? client.patch(kind, keyOf(latest), { type: 'merge', body: { metadata } as JsonObject }, { signal })
        : latest
    })
  })
}

/** Returns the newest version of the object that this process knows: from the cache, or the result of a write by its controllers. */
export function newestOf<T extends KubeObject>(kind: Kind<T>, object: T, cache: Cache | undefined): T {
  const cached = cache?.newest(kind, keyOf(object))
  if (cached?.metadata.uid !== object.metadata.uid) return object
  return Number(cached.metadata.resourceVersion) > Number(object.metadata.resourceVersion) ? cached : object
}

/**
 * Calls `write` with a version of the object, and after a conflict again with a newer one: from the cache if it has one,
 * otherwise from the API server. Throws the conflict after `Attempts` calls, and if the newer version is another object with the same name.
 */
async function retryConflicts<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  start: T,
  { cache, signal }: { readonly cache: Cache | undefined; readonly signal: AbortSignal | undefined },
  write: (latest: T) => Promise<T>,
): Promise<T> {
  let latest = start
  for (let attempt = 1; ; attempt++) {
    try {
      return await write(latest)
    } catch (err) {
      if (!isReason(err, 'Conflict') || attempt === Attempts) throw err
      const cached = newestOf(kind, latest, cache)
      const newer = cached === latest ? await client.get(kind, keyOf(latest), signal ? { signal } : {}) : cached
      if (newer.metadata.uid !== start.metadata.uid) throw err
      latest = newer
    }
  }
}

/**
 * Writes changed metadata and spec. Other controllers write finalizers and owner references as well, and a merge patch replaces a whole
 * list. Therefore the additions and removals of this reconcile are applied to the current list, under an optimistic lock. An entry that
 * another writer has removed is not restored.
 */
async function commitMetadataAndSpec<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  start: T,
  before: T,
  after: T,
  { signal, cache }: CommitOptions,
): Promise<T> {
  const requestOptions = signal ? { signal } : {}
  const change = diffMerge(withoutLists(mainPart(before)), withoutLists(mainPart(after)))
  const lists = SharedLists.filter((list) => !equal(before.metadata[list] ?? [], after.metadata[list] ?? []))
  return retryConflicts(client, kind, start, { cache, signal }, async (latest) => {
    const metadata: Record<string, unknown> = {}
    for (const list of lists) {
      const current: readonly unknown[] = latest.metadata[list] ?? []
      const merged = mergeItems(current, before.metadata[list] ?? [], after.metadata[list] ?? [])
      if (!equal(current, merged)) metadata[list] = merged.length === 0 ? null : merged
    }
    const isLocked = Object.keys(metadata).length > 0
    if (!change && !isLocked) return latest
    if (isLocked) metadata.resourceVersion = latest.metadata.resourceVersion
    const body = { ...change, metadata: { ...(change?.metadata as object | undefined), ...metadata } }
    return client.patch(kind, keyOf(before), { type: 'merge', body }, requestOptions)
  })
}

const SharedLists = ['finalizers', 'ownerReferences'] as const

/** Applies the additions and removals between `before` and `after` to the current list. */
function mergeItems(current: readonly unknown[], before: readonly unknown[], after: readonly unknown[]): unknown[] {
  const has = (list: readonly unknown[], item: unknown) => list.some((existing) => equal(existing, item))
  const remaining = current.filter((item) => !has(before, item) || has(after, item))
  return [...remaining, ...after.filter((item) => !has(before, item) && !has(remaining, item))]
}

const withoutLists = ({ metadata, ...rest }: Record<string, unknown>): Record<string, unknown> => {
  const { finalizers: _finalizers, ownerReferences: _owners, ...otherMetadata } = metadata as Record<string, unknown>
  return { ...rest, metadata: otherMetadata }
}

async function commitConditions<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  start: T,
  before: T,
  after: T,
  status: JsonObject | undefined,
  { conditions: owned, legacyConditions: ownedLegacy = [], signal, cache }: CommitOptions,
): Promise<T> {
  const requestOptions = signal ? { signal } : {}
  const [original, computed] = [listsOf(before), listsOf(after)]
  return retryConflicts(client, kind, start, { cache, signal }, async (latest) => {
    const stored = listsOf(latest)
    const contested =
      contestedType(stored.conditions, original.conditions, computed.conditions, owned) ??
      contestedType(stored.legacy, original.legacy, computed.legacy, ownedLegacy)
    if (contested) throw conflict(kind, before.metadata.name, `the condition ${contested} has been changed by another writer`)
    const merged: Lists = {
      conditions: mergeConditions(stored.conditions, original.conditions, computed.conditions, owned),
      legacy: mergeConditions(stored.legacy, original.legacy, computed.legacy, ownedLegacy),
    }
    const changed = !equal(merged, stored)
    if (!changed && !status) return latest
    const metadata = { resourceVersion: latest.metadata.resourceVersion }
    const body = changed ? { metadata, status: withLists(status, merged, stored) } : { status }
    return client.patch(kind, keyOf(before), { type: 'merge', body }, { subresource: 'status', ...requestOptions })
  })
}

/** Adds the merged lists that differ from the stored lists to the status patch. */
function withLists(status: JsonObject = {}, merged: Lists, stored: Lists): object {
  const conditions = equal(merged.conditions, stored.conditions) ? {} : { conditions: merged.conditions }
  if (equal(merged.legacy, stored.legacy)) return { ...status, ...conditions }
  const deprecated = isRecord(status.deprecated) ? status.deprecated : {}
  const v1beta1 = isRecord(deprecated.v1beta1) ? deprecated.v1beta1 : {}
  return { ...status, ...conditions, deprecated: { ...deprecated, v1beta1: { ...v1beta1, conditions: merged.legacy } } }
}

/**
 * Returns the type of a condition that is not owned, and that this reconcile and another writer have changed in different ways. Upstream:
 * Patch.Apply in util/conditions/patch.go, v1.14.
 */
function contestedType(
  latest: readonly Typed[],
  original: readonly Typed[],
  computed: readonly Typed[],
  owned: readonly string[],
): string | undefined {
  const types = new Set([...original, ...computed].map(({ type }) => type))
  return [...types].find((type) => {
    if (owned.includes(type)) return false
    const [theirs, before, ours] = [latest, original, computed].map((list) => stateOf(list, type))
    return !equal(before, ours) && !equal(before, theirs) && !equal(theirs, ours)
  })
}

/** Returns a condition without its time. */
function stateOf(conditions: readonly Typed[], type: string): object | undefined {
  const condition = conditions.find((candidate) => candidate.type === type)
  return condition && { ...condition, lastTransitionTime: undefined }
}

/**
 * Merges conditions by type, in the order of `computed`. A condition of an owned type comes from `computed`. Any other condition comes from
 * `computed` if this reconcile has changed it and it differs from the condition in `latest` in more than its time; otherwise it comes from
 * `latest`. Conditions that other writers have added follow.
 */
function mergeConditions(
  latest: readonly Typed[],
  original: readonly Typed[],
  computed: readonly Typed[],
  owned: readonly string[],
): Typed[] {
  const find = (list: readonly Typed[], type: string) => list.find((condition) => condition.type === type)
  const merged: Typed[] = []
  for (const condition of computed) {
    const stored = find(latest, condition.type)
    const isChanged = () =>
      !equal(find(original, condition.type), condition) &&
      !equal(stateOf(latest, condition.type), stateOf([condition], condition.type))
    if (owned.includes(condition.type) || isChanged()) merged.push(condition)
    else if (stored) merged.push(stored)
  }
  for (const condition of latest) {
    const dropped = find(original, condition.type) !== undefined || owned.includes(condition.type)
    if (!find(computed, condition.type) && !dropped) merged.push(condition)
  }
  return merged
}

const listsOf = (object: KubeObject): Lists => ({
  conditions: (object as WithStatus).status?.conditions ?? [],
  legacy: legacyConditionsOf(object as WithStatus),
})

/**
 * Returns the fields that a commit can change in the main resource: labels, annotations, owner references and finalizers, and all fields
 * outside of metadata except apiVersion, kind and status.
 */
function mainPart(object: KubeObject): Record<string, unknown> {
  const { status: _, apiVersion: _v, kind: _k, ...rest } = object as WithStatus
  const { labels, annotations, ownerReferences, finalizers } = object.metadata
  return { ...rest, metadata: { labels, annotations, ownerReferences, finalizers } }
}

/**
 * Returns the status without the lists that are merged. The result always contains `deprecated.v1beta1`: otherwise a patch that removes the
 * last other field of `v1beta1` would also remove the conditions of `v1beta1`.
 */
function statusPart(object: KubeObject): Record<string, unknown> {
  const { conditions: _, deprecated, ...rest } = (object as WithStatus).status ?? {}
  const v1beta1 = isRecord(deprecated) && isRecord(deprecated.v1beta1) ? deprecated.v1beta1 : {}
  const { conditions: _legacy, ...fields } = v1beta1
  return { ...rest, deprecated: { v1beta1: fields } }
}
