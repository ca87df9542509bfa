/** Refuses work before memory is used up: V8 ends the process when its heap reaches the limit. */
import { getHeapStatistics } from 'node:v8'
import type { Clock } from '@capstan/kube'

export interface Heap {
  readonly used_heap_size: number
  readonly heap_size_limit: number
}

/** Part of the heap above which requests are answered 429. V8 collects garbage long before. */
export const MaxHeapShare = 0.9

/** Milliseconds for which a measurement counts. */
const Fresh = 50

/** Returns a function that says whether the heap is too full for further requests. */
export function memoryCeiling(clock: Clock, heap: () => Heap = getHeapStatistics): () => boolean {
  let measured = Number.NEGATIVE_INFINITY
  let isFull = false
  return () => {
    const now = clock.now()
    // A clock that was set back does not keep an old measurement.
    if (now < measured || now - measured >= Fresh) {
      measured = now
      const { used_heap_size: used, heap_size_limit: limit } = heap()
      isFull = used > limit * MaxHeapShare
    }
    return isFull
  }
}
