/**
 * Requests of users to call the hooks of a Cluster again at once: its annotation `retry-hooks`, which is removed once it was honoured.
 * Several controllers honour it, so each one counts the requests when it sees them, and depends on no annotation that another one removes.
 */
import { Cluster, RetryHooksAnnotation, WaitingHooksAnnotation } from '@capstan/api'
import type { Predicate } from '@capstan/controller'
import { type Client, isReason, type JsonPatchOperation, keyOf } from '@capstan/kube'

export const retryRequestOf = (cluster: Cluster | undefined): string | undefined =>
  cluster?.metadata.annotations?.[RetryHooksAnnotation]

/**
 * Counts the requests of each Cluster. In memory only, as are the responses that a request invalidates: a new process begins without
 * either, and calls.
 */
export class RetryRequests {
  /** By uid of the Cluster. */
  readonly #counts = new Map<string, number>()

  /** The number of requests seen for this Cluster: responses from before the last request are not valid any more. */
  of({ metadata }: Cluster): number {
    return this.#counts.get(metadata.uid) ?? 0
  }

  /** Wraps the predicate of a watch on Clusters: counts requests, and accepts them. */
  or(matters: Predicate<Cluster>): Predicate<Cluster> {
    return (change) => this.#isRequest(change) || matters(change)
  }

  #isRequest({ previous, object }: Parameters<Predicate<Cluster>>[0]): boolean {
    const { uid } = object?.metadata ?? {}
    const before = previous?.metadata.uid === uid ? previous : undefined
    if (previous && !before) this.#counts.delete(previous.metadata.uid)
    const request = retryRequestOf(object)
    if (uid === undefined || request === undefined || request === retryRequestOf(before)) return false
    this.#counts.set(uid, (this.#counts.get(uid) ?? 0) + 1)
    return true
  }
}

/**
 * Removes the request that `cluster` carries, and writes the records of its waiting hooks with it: a process that ends in between neither
 * loses a request nor honours it twice. A request that was written meanwhile stays. Returns the Cluster, and whether it was removed.
 */
export async function removeRetryRequest(
  client: Client,
  cluster: Cluster,
  signal: AbortSignal,
  records = cluster.metadata.annotations?.[WaitingHooksAnnotation],
): Promise<{ readonly cluster: Cluster; readonly removed: boolean }> {
  const { uid, annotations = {} } = cluster.metadata
  const path = pathOf(RetryHooksAnnotation)
  const operations: JsonPatchOperation[] = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path, value: annotations[RetryHooksAnnotation]! },
    { op: 'remove', path },
    ...changeOf(pathOf(WaitingHooksAnnotation), annotations[WaitingHooksAnnotation], records),
  ]
  try {
    return { cluster: await client.patch(Cluster, keyOf(cluster), { type: 'json', operations }, { signal }), removed: true }
  } catch (err) {
    // Another request, another Cluster, or none: the change is an event, and so reconciled.
    if (!isReason(err, 'Invalid', 'NotFound')) throw err
    return { cluster, removed: false }
  }
}

function changeOf(path: string, now: string | undefined, wanted: string | undefined): JsonPatchOperation[] {
  if (wanted === now) return []
  return [wanted === undefined ? { op: 'remove', path } : { op: 'add', path, value: wanted }]
}

const pathOf = (annotation: string): string => `/metadata/annotations/${annotation.replaceAll('~', '~0').replaceAll('/', '~1')}`
