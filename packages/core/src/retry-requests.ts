/**
 * With the annotation `runtime.capstan.dev/retry-hooks`, users request that the hooks of a Cluster are called again at once. The topology
 * controller removes the annotation after its calls, and the Cluster controller removes it from Clusters without topology. The controllers of
 * Machines and MachineDeployments may reconcile later, so they count requests when their watches deliver them.
 */
import { Cluster, RetryHooksAnnotation, WaitingHooksAnnotation } from '@capstan/api'
import type { Predicate } from '@capstan/controller'
import { type Client, isReason, type JsonPatchOperation, keyOf } from '@capstan/kube'
import { annotationPath } from './annotation-path.ts'

/** Returns the value of the annotation by which a user requests new calls; `undefined` without a request. */
export const retryRequestOf = (cluster: Cluster | undefined): string | undefined =>
  cluster?.metadata.annotations?.[RetryHooksAnnotation]

/**
 * Counts the requests of each Cluster, for the controllers of Machines and MachineDeployments. Counts are kept in memory only, like the
 * responses that these controllers cache: a new process has no cached responses, and calls the hooks in any case.
 */
export class RetryRequests {
  /** By uid of the Cluster. */
  readonly #counts = new Map<string, number>()

  /** Returns the number of requests seen for this Cluster. A response that was cached at a lower number is invalid. */
  countFor({ metadata }: Cluster): number {
    return this.#counts.get(metadata.uid) ?? 0
  }

  /** Wraps the predicate of a watch on Clusters: counts retry requests, and accepts their events. */
  orRetryRequest(matters: Predicate<Cluster>): Predicate<Cluster> {
    return (change) => this.#isRequest(change) || matters(change)
  }

  #isRequest({ previous, object }: Parameters<Predicate<Cluster>>[0]): boolean {
    const { uid } = object?.metadata ?? {}
    const earlier = previous?.metadata.uid === uid ? previous : undefined
    if (previous && !earlier) this.#counts.delete(previous.metadata.uid)
    const request = retryRequestOf(object)
    if (uid === undefined || request === undefined || request === retryRequestOf(earlier)) return false
    this.#counts.set(uid, (this.#counts.get(uid) ?? 0) + 1)
    return true
  }
}

/**
 * Removes the retry request of `cluster` and writes the records of its waiting hooks in one patch, so that a crash neither loses a request
 * nor repeats it. A request that was written meanwhile stays. Returns the Cluster, and whether the request was removed. `records` defaults to
 * the present records.
 */
export async function removeRetryRequest(
  client: Client,
  cluster: Cluster,
  signal: AbortSignal,
  records = cluster.metadata.annotations?.[WaitingHooksAnnotation],
): Promise<{ readonly cluster: Cluster; readonly removed: boolean }> {
  const { uid, annotations = {} } = cluster.metadata
  const path = annotationPath(RetryHooksAnnotation)
  const operations: JsonPatchOperation[] = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path, value: annotations[RetryHooksAnnotation]! },
    { op: 'remove', path },
    ...changeOf(annotationPath(WaitingHooksAnnotation), annotations[WaitingHooksAnnotation], records),
  ]
  try {
    return { cluster: await client.patch(Cluster, keyOf(cluster), { type: 'json', operations }, { signal }), removed: true }
  } catch (err) {
    // The request or the Cluster has changed or was deleted: the watch event triggers the next reconcile.
    if (!isReason(err, 'Invalid', 'NotFound')) throw err
    return { cluster, removed: false }
  }
}

function changeOf(path: string, current: string | undefined, desired: string | undefined): JsonPatchOperation[] {
  if (desired === current) return []
  return [desired === undefined ? { op: 'remove', path } : { op: 'add', path, value: desired }]
}
