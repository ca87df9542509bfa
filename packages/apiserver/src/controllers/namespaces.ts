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
  timestamp,
  unknownKind,
} from '@capstan/kube'
import type { Registry } from '../registry/registry.ts'
import type { Store } from '../store/store.ts'
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
    if (left.instances.size > 0) await report(namespace, left)
    else await release(namespace)
  }

  /** Every namespaced resource once, whatever the number of its versions. */
  function stored() {
    const seen = new Set<string>()
    return registry.list().filter(({ storage, namespaced }) => namespaced && !seen.has(storage) && seen.add(storage))
  }

  function remains(name: string) {
    const instances = new Map<string, number>()
    const finalizers = new Map<string, number>()
    for (const { storage } of stored()) {
      const objects = store.list(storage, name)
      if (objects.length > 0) instances.set(storage, objects.length)
      for (const { metadata } of objects) {
        for (const finalizer of metadata.finalizers ?? []) finalizers.set(finalizer, (finalizers.get(finalizer) ?? 0) + 1)
      }
    }
    return { instances, finalizers }
  }

  async function report(namespace: Namespace, { instances, finalizers }: ReturnType<typeof remains>): Promise<void> {
    const texts = (counts: Map<string, number>, say: (name: string, count: number) => string) =>
      [...counts]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, count]) => say(name, count))
        .join(', ')
    const content = texts(instances, (resource, count) => `${resource} has ${count} resource instances`)
    const held = texts(finalizers, (finalizer, count) => `${finalizer} in ${count} resource instances`)
    const next = draft(namespace)
    const conditions = ((next.status ??= {}).conditions ??= [])
    const set = (type: string, status: Condition['status'], reason: string, message: string) => {
      const found = conditions.find((condition) => condition.type === type)
      if (found?.status === status && found.reason === reason && found.message === message) return
      const condition = { type, status, lastTransitionTime: timestamp(clock.now()), reason, message }
      if (found) Object.assign(found, condition)
      else conditions.push(condition)
    }
    set('NamespaceContentRemaining', 'True', 'SomeResourcesRemain', `Some resources are remaining: ${content}`)
    if (held === '')
      set('NamespaceFinalizersRemaining', 'False', 'ContentHasNoFinalizers', 'All content-preserving finalizers finished')
    else {
      const message = `Some content in the namespace has finalizers remaining: ${held}`
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

/** Whoever wrote in between has put the namespace in the queue again. */
async function ignoreConflict(write: Promise<unknown>): Promise<void> {
  try {
    await write
  } catch (err) {
    if (!isReason(err, 'Conflict', 'NotFound')) throw err
  }
}
