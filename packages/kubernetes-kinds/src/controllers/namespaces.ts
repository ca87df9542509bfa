/**
 * Deletes the content of namespaces that are being deleted, and then removes their finalizer. Upstream: pkg/controller/namespace/deletion,
 * v1.36.
 */
import { type Condition, draft, equal, isReason, messageOf, Namespace, seconds, timeLeft, unknownKind } from '@capstan/kube'
import { type ControllerOptions, setCondition, WorkQueue } from '@capstan/apiserver/kinds'

export function runNamespaces({ store, registry, clock, log, client }: ControllerOptions): () => void {
  const queue = new WorkQueue({ name: 'namespaces', clock, log, run: deleteContent })
  const terminatingNamespace = (name: string) => {
    const namespace = store.get({ resource: 'namespaces', namespace: '', name })
    return namespace?.metadata.deletionTimestamp === undefined ? undefined : (namespace as Namespace)
  }
  // A namespace that is being deleted is reconciled when it changes, and when one of its objects is removed.
  const stop = store.subscribe(undefined, ({ key, object }) => {
    if (key.resource === 'namespaces') {
      if (object?.metadata.deletionTimestamp !== undefined) queue.add(key.name)
    } else if (!object && key.namespace !== '' && terminatingNamespace(key.namespace)) queue.add(key.namespace)
  })
  for (const { metadata } of store.list('namespaces')) if (metadata.deletionTimestamp !== undefined) queue.add(metadata.name)
  return () => {
    stop()
    queue.close()
  }

  async function deleteContent(name: string): Promise<void> {
    if (!terminatingNamespace(name)) return
    // A rejected deletion must not prevent other deletions: the rejected object may become deletable only after them.
    const failures: unknown[] = []
    for (const info of namespacedResources()) await deleteAll(info, name).catch((err: unknown) => failures.push(err))
    const namespace = terminatingNamespace(name)
    if (!namespace) return
    const remaining = countRemaining(name)
    if (remaining.size === 0) return removeFinalizer(namespace)
    const since = Date.parse(namespace.metadata.deletionTimestamp!)
    const wait = timeLeft({ since, length: ReportAfter, now: clock.now() })
    if (wait > 0 && failures.length === 0) return queue.addAfter(name, wait)
    await report(namespace, remaining, failures.map(messageOf))
    if (failures.length > 0) throw failures[0]
  }

  /** Deletes the objects of a resource in a namespace. @throws the first error except NotFound, after all deletions were tried */
  async function deleteAll(info: ReturnType<typeof namespacedResources>[number], namespace: string): Promise<void> {
    const kind = unknownKind({ ...info, scope: 'Namespaced' })
    const failures: unknown[] = []
    for (const { metadata } of store.list(info.storage, namespace)) {
      if (metadata.deletionTimestamp !== undefined) continue
      try {
        await client.delete(kind, { namespace, name: metadata.name }, { propagationPolicy: 'Background' })
      } catch (err) {
        if (!isReason(err, 'NotFound')) failures.push(err)
      }
    }
    if (failures.length > 0) throw failures[0]
  }

  /** Returns each namespaced resource once, even if several versions or groups serve it. */
  function namespacedResources() {
    const seenStorages = new Set<string>()
    return registry
      .list()
      .filter(({ storage, namespaced }) => namespaced && !seenStorages.has(storage) && seenStorages.add(storage))
  }

  /** Returns the number and the finalizers of the remaining objects, by resource. */
  function countRemaining(name: string): Map<string, RemainingObjects> {
    const remaining = new Map<string, RemainingObjects>()
    for (const { storage, plural, group } of namespacedResources()) {
      const objects = store.list(storage, name)
      if (objects.length === 0) continue
      const finalizers = objects.flatMap(({ metadata }) => metadata.finalizers ?? [])
      remaining.set(`${plural}.${group}`, { count: objects.length, finalizers })
    }
    return remaining
  }

  async function report(namespace: Namespace, remaining: ReturnType<typeof countRemaining>, failures: string[]): Promise<void> {
    const finalizers = new Map<string, number>()
    for (const name of [...remaining.values()].flatMap((resource) => resource.finalizers))
      finalizers.set(name, (finalizers.get(name) ?? 0) + 1)
    const content = [...remaining].map(([resource, { count }]) => `${resource} has ${count} resource instances`)
    const finalizerTexts = [...finalizers].map(([finalizer, count]) => `${finalizer} in ${count} resource instances`)
    const next = draft(namespace)
    const conditions = ((next.status ??= {}).conditions ??= [])
    const set = (type: string, status: Condition['status'], reason: string, message: string) =>
      setCondition(conditions, { type, status, reason, message }, clock.now())
    for (const { type, reason, message } of successConditions) set(type, 'False', reason, message)
    if (failures.length > 0) {
      const message = `Failed to delete all resource types, ${failures.length} remaining: ${listed(failures)}`
      set('NamespaceDeletionContentFailure', 'True', 'ContentDeletionFailed', message)
    }
    set('NamespaceContentRemaining', 'True', 'SomeResourcesRemain', `Some resources are remaining: ${listed(content)}`)
    if (finalizerTexts.length === 0)
      set('NamespaceFinalizersRemaining', 'False', 'ContentHasNoFinalizers', 'All content-preserving finalizers finished')
    else {
      const message = `Some content in the namespace has finalizers remaining: ${listed(finalizerTexts)}`
      set('NamespaceFinalizersRemaining', 'True', 'SomeFinalizersRemain', message)
    }
    if (!equal(next, namespace)) await ignoreConflict(client.update(Namespace, next, { subresource: 'status' }))
  }

  async function removeFinalizer(namespace: Namespace): Promise<void> {
    const finalizers = (namespace.spec?.finalizers ?? []).filter((finalizer) => finalizer !== 'kubernetes')
    await ignoreConflict(
      client.transport.send({
        verb: 'update',
        group: '',
        version: 'v1',
        plural: 'namespaces',
        name: namespace.metadata.name,
        subresource: 'finalize',
        body: { ...namespace, spec: { finalizers } },
      }),
    )
  }
}

/** Remaining objects of one resource: their number, and the finalizers of all of them. */
interface RemainingObjects {
  readonly count: number
  readonly finalizers: readonly string[]
}

/**
 * Time from the start of the namespace's deletion until its conditions are written, if objects remain. When the deletion of an object
 * fails, the conditions are written at once. Upstream starts to reconcile after this time.
 */
const ReportAfter = seconds(5)

/** Conditions of a deletion without failures. The first two never report a failure: the resources are read from the registry. */
const successConditions = [
  {
    type: 'NamespaceDeletionDiscoveryFailure',
    reason: 'ResourcesDiscovered',
    message: 'All resources successfully discovered',
  },
  {
    type: 'NamespaceDeletionGroupVersionParsingFailure',
    reason: 'ParsedGroupVersions',
    message: 'All legacy kube types successfully parsed',
  },
  {
    type: 'NamespaceDeletionContentFailure',
    reason: 'ContentDeleted',
    message: 'All content successfully deleted, may be waiting on finalization',
  },
]

const listed = (texts: string[]): string => texts.sort().join(', ')

/** Ignores conflicts, because the concurrent write has put the namespace into the queue again, and ignores a deleted namespace. */
async function ignoreConflict(write: Promise<unknown>): Promise<void> {
  try {
    await write
  } catch (err) {
    if (!isReason(err, 'Conflict', 'NotFound')) throw err
  }
}
