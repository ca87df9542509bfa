import type { UnknownObject } from '@capstan/kube'
import type { Store } from './store.ts'

/** A write of `object`, which replaces `old` (`undefined` for a create). */
export interface PendingWrite {
  readonly object: UnknownObject
  readonly old: UnknownObject | undefined
}

/**
 * Writes that have passed a check of quotas, or of the addresses and ports of Services, but are not stored yet. Later checks include these
 * writes, so that concurrent writes neither exceed a quota nor take the same address or port.
 */
export class PendingWrites {
  readonly #store: Store
  readonly #writes = new Map<UnknownObject, PendingWrite & { readonly resource: string }>()

  constructor(store: Store) {
    this.#store = store
  }

  add(resource: string, object: UnknownObject, old: UnknownObject | undefined): void {
    this.#writes.set(object, { resource, object, old })
  }

  /** Removes a write that has succeeded or failed. */
  delete(object: UnknownObject): void {
    this.#writes.delete(object)
  }

  /** Returns the pending writes of one resource, without the write of `object` itself. */
  of(resource: string, object: UnknownObject): PendingWrite[] {
    return [...this.#writes.values()].filter(
      (write) => write.resource === resource && write.object !== object && this.#isNotStored(resource, write),
    )
  }

  /** Reports whether the stored object is still the one that the write replaces. A committed write stays in the map for a short time. */
  #isNotStored(resource: string, { object: { metadata }, old }: PendingWrite): boolean {
    const stored = this.#store.get({ resource, namespace: metadata.namespace ?? '', name: metadata.name ?? '' })
    return stored?.metadata.resourceVersion === old?.metadata.resourceVersion
  }
}
