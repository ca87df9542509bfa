/**
 * Measures the heap, so that requests are rejected before memory is exhausted: V8 ends the process when its heap reaches the
 * limit.
 */
import { getHeapStatistics } from 'node:v8'
import type { Clock } from '@capstan/kube'

export interface Heap {
  readonly used_heap_size: number
  readonly heap_size_limit: number
}

/** Share of the heap limit above which the heap counts as full. V8 usually collects garbage before the heap reaches this share. */
export const MaxHeapShare = 0.9

/** Milliseconds for which a measurement is cached. */
const CacheTime = 50

/** Returns a function that reports whether the heap is too full for further requests. */
export function memoryCeiling(clock: Clock, heap: () => Heap = getHeapStatistics): () => boolean {
  let measured = Number.NEGATIVE_INFINITY
  let isFull = false
  return () => {
    const now = clock.now()
    // `now < measured`: the clock was set back.
    if (now < measured || now - measured >= CacheTime) {
      measured = now
      const { used_heap_size: used, heap_size_limit: limit } = heap()
      isFull = used > limit * MaxHeapShare
    }
    return isFull
  }
}
