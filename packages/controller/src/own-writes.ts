/**
 * Protects against stale reads: the writes of a reconcile are recorded, and its key waits until the cache contains them. Otherwise a
 * reconcile that runs before the cache contains a created Machine could create a second Machine.
 */
import type { ApiRequest, Client, Clock, Kind, KubeObject, ObjectKey, Transport } from '@capstan/kube'
import { createClient, isReason, keyOf, keyText, withSend } from '@capstan/kube'
import type { Informers } from './cache.ts'
import type { InformerEvent } from './informer.ts'
import type { WriteTimes } from './write-times.ts'

interface OwnWrite {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly key: string
  readonly revision: number
}

export interface OwnWrites {
  /** The client for the reconcile, which records its writes. */
  readonly client: Client
  /**
   * Whether the server has reported that a recorded write changed an object. A write without an effect also counts, unless the cache
   * had the current object before.
   */
  readonly changed: boolean
  /** Errors of rejected status writes. They must be logged: the status stays stale, and cannot show the cause itself. */
  readonly rejectedStatus: readonly unknown[]
  /** Whether a change of an object of `kind` is the result of a write of the reconcile. */
  isOwnChange(kind: Kind, change: Pick<InformerEvent, 'key' | 'object'>): boolean
  /**
   * Resolves when the cache contains all writes of the reconcile to watched kinds, except completed deletions; `undefined` when
   * it contains them already.
   */
  waitUntilCached(): Promise<void> | undefined
}

/** Verbs of recorded writes. Dry runs and `deletecollection` are not recorded. */
const WriteVerbs: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete'])

/** Whether the server would reject the same write again. */
const isRejected = (err: unknown): boolean => isReason(err, 'Invalid', 'Forbidden', 'BadRequest', 'RequestEntityTooLarge')

/** Wraps `client` for one reconcile. Records its writes, and the durations of the writes in `times`. */
export function recordWrites(client: Client, informers: Informers, times?: WriteTimes): OwnWrites {
  const writes: OwnWrite[] = []
  /** Stored changes, by resource, key and resourceVersion; completed deletions without resourceVersion. */
  const ownChanges = new Set<string>()
  const { transport } = client
  const rejectedStatus: unknown[] = []
  let changed = false

  const recording: Transport = withSend(transport, async (request, signal) => {
    if (!WriteVerbs.has(request.verb) || request.options?.dryRun) return transport.send(request, signal)
    const informer = informers.find(kindOf(request))
    // Read before the request, because with a server in the same process the watch event may arrive before the response.
    const cachedRevision = request.name === undefined ? undefined : informer?.get(targetOf(request))?.metadata.resourceVersion
    const send = () => transport.send(request, signal)
    const response = (await (times ? times.measure(send) : send()).catch((err) => {
      if (request.subresource === 'status' && isRejected(err)) rejectedStatus.push(err)
      throw err
    })) as KubeObject
    const revision = response.kind === 'Status' ? undefined : response.metadata?.resourceVersion
    if (revision !== undefined && revision === cachedRevision) return response
    changed = true
    const key = keyText(revision === undefined ? targetOf(request) : keyOf(response))
    ownChanges.add(changeText(kindOf(request), key, revision))
    // A completed deletion returns a Status, which has no revision to wait for.
    if (informer && revision !== undefined) {
      writes.push({ ...kindOf(request), key, revision: Number(revision) })
      // Responses of some subresources are objects of other kinds, and a deleted object may no longer exist.
      if (request.verb !== 'delete' && response.kind === informer.kind.kind) informer.recordWrite(response)
    }
    return response
  })
  return {
    client: createClient(recording),
    get changed() {
      return changed
    },
    rejectedStatus,
    isOwnChange: (kind, { key, object }) => ownChanges.has(changeText(kind, keyText(key), object?.metadata.resourceVersion)),
    waitUntilCached() {
      const waiting = writes.flatMap((write) => informers.find(kindOf(write))?.waitForRevision(write.key, write.revision) ?? [])
      return waiting.length === 0 ? undefined : Promise.all(waiting).then(() => undefined)
    },
  }
}

const changeText = ({ group, plural }: Pick<Kind, 'group' | 'plural'>, key: string, revision: string | undefined): string =>
  `${group}/${plural} ${key} ${revision ?? 'deleted'}`

const targetOf = ({ namespace, name = '' }: ApiRequest): ObjectKey => (namespace === undefined ? { name } : { namespace, name })

const kindOf = ({ group, version, plural }: { group: string; version: string; plural: string }): Kind => ({
  group,
  version,
  plural,
  kind: '',
  scope: 'Namespaced',
})

/**
 * Resolves with `done` when `promise` resolves or `signal` aborts, and with `late` after `ms` milliseconds. Without this limit, an
 * interrupted watch would block a key until it is resumed; without the signal, the wait would delay a process that stops.
 */
export function within(promise: Promise<void>, ms: number, clock: Clock, signal?: AbortSignal): Promise<'done' | 'late'> {
  return new Promise((resolve) => {
    const end = (result: 'done' | 'late') => {
      timer.cancel()
      signal?.removeEventListener('abort', finish)
      resolve(result)
    }
    const finish = () => end('done')
    const timer = clock.schedule(ms, () => end('late'))
    signal?.addEventListener('abort', finish, { once: true })
    void promise.then(finish)
  })
}
