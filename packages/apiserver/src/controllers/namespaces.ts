/**
 * Empties namespaces that are being deleted, and lets them go.
 * Upstream: pkg/controller/namespace/deletion, v1.36.
 */
import {
  type Client,
  type Clock,
  type Condition,
  draft,
  equal,
  isReason,
  type Logger,
  Namespace,
  seconds,
  unknownKind,
} from '@capstan/kube'
import type { Registry } from '../registry/registry.ts'
import type { Store } from '../store/store.ts'
import { setCondition } from './set-condition.ts'
import { WorkQueue } from './work-queue.ts'

export interface ControllerOptions {
  readonly store: Store
  readonly registry: Registry
  readonly clock: Clock
  readonly log: Logger
  readonly client: Client
}

export function runNamespaces({ store, registry, clock, log, client }: ControllerOptions): () => void {
  const queue = new WorkQueue({ name: 'namespaces', clock, log, run: empty })
  const terminating = (name: string) => {
    const namespace = store.get({ resource: 'namespaces', namespace: '', name })
    return namespace?.metadata.deletionTimestamp === undefined ? undefined : (namespace as Namespace)
  }
  // A namespace is looked at when it changes, and when one of its objects goes.
  const stop = store.subscribe(undefined, ({ key, object }) => {
    if (key.resource === 'namespaces') {
      if (object?.metadata.deletionTimestamp !== undefined) queue.add(key.name)
    } else if (!object && key.namespace !== '' && terminating(key.namespace)) queue.add(key.namespace)
  })
  for (const { metadata } of store.list('namespaces')) if (metadata.deletionTimestamp !== undefined) queue.add(metadata.name)
  return () => {
    stop()
    queue.close()
  }

  async function empty(name: string): Promise<void> {
    if (!terminating(name)) return
    for (const definition of stored()) {
      const kind = unknownKind({ ...definition, scope: 'Namespaced' })
      for (const { metadata } of store.list(definition.storage, name)) {
        if (metadata.deletionTimestamp !== undefined) continue
        try {
          await client.delete(kind, { namespace: name, name: metadata.name }, { propagationPolicy: 'Background' })
        } catch (err) {
          if (!isReason(err, 'NotFound')) throw err
        }
      }
    }
    const namespace = terminating(name)
    if (!namespace) return
    const left = remains(name)
    if (left.size === 0) return release(namespace)
    const wait = Date.parse(namespace.metadata.deletionTimestamp!) + Patience - clock.now()
    if (wait > 0) queue.addAfter(name, wait)
    else await report(namespace, left)
  }

  /** Every namespaced resource once, whatever the number of its versions. */
  function stored() {
    const seen = new Set<string>()
    return registry.list().filter(({ storage, namespaced }) => namespaced && !seen.has(storage) && seen.add(storage))
  }

  /** What is still there, and what holds it, counted. */
  function remains(name: string): Map<string, Remains> {
    const left = new Map<string, Remains>()
    for (const { storage, plural, group } of stored()) {
      const objects = store.list(storage, name)
      if (objects.length === 0) continue
      const finalizers = objects.flatMap(({ metadata }) => metadata.finalizers ?? [])
      left.set(`${plural}.${group}`, { count: objects.length, finalizers })
    }
    return left
  }

  async function report(namespace: Namespace, left: ReturnType<typeof remains>): Promise<void> {
    const finalizers = new Map<string, number>()
    for (const name of [...left.values()].flatMap((one) => one.finalizers)) finalizers.set(name, (finalizers.get(name) ?? 0) + 1)
    const content = [...left].map(([resource, { count }]) => `${resource} has ${count} resource instances`)
    const held = [...finalizers].map(([finalizer, count]) => `${finalizer} in ${count} resource instances`)
    const next = draft(namespace)
    const conditions = ((next.status ??= {}).conditions ??= [])
    const set = (type: string, status: Condition['status'], reason: string, message: string) =>
      setCondition(conditions, { type, status, reason, message }, clock.now())
    for (const { type, reason, message } of fine) set(type, 'False', reason, message)
    set('NamespaceContentRemaining', 'True', 'SomeResourcesRemain', `Some resources are remaining: ${listed(content)}`)
    if (held.length === 0)
      set('NamespaceFinalizersRemaining', 'False', 'ContentHasNoFinalizers', 'All content-preserving finalizers finished')
    else {
      const message = `Some content in the namespace has finalizers remaining: ${listed(held)}`
      set('NamespaceFinalizersRemaining', 'True', 'SomeFinalizersRemain', message)
    }
    if (!equal(next, namespace)) await ignoreConflict(client.update(Namespace, next, { subresource: 'status' }))
  }

  async function release(namespace: Namespace): Promise<void> {
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

interface Remains {
  readonly count: number
  readonly finalizers: readonly string[]
}

/** Upstream first looks when as much time has gone by, and says nothing before. */
const Patience = seconds(5)

/** What cannot go wrong where everything is in one process; upstream says so all the same. */
const fine = [
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

/** Whoever wrote in between has put the namespace in the queue again. */
async function ignoreConflict(write: Promise<unknown>): Promise<void> {
  try {
    await write
  } catch (err) {
    if (!isReason(err, 'Conflict', 'NotFound')) throw err
  }
}
