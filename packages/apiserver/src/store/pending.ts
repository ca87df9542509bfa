import type { UnknownObject } from '@capstan/kube'
import type { Store } from './store.ts'

export interface PendingWrite {
  readonly object: UnknownObject
  readonly old: UnknownObject | undefined
}

/**
 * Writes that were found to fit, on their way to the store: whoever counts what is taken counts them, too, so that writes at the same
 * moment do not take the same thing.
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

  /** The write has come to its end, in whichever way. */
  delete(object: UnknownObject): void {
    this.#writes.delete(object)
  }

  /** Those of one resource that the store does not show yet, but for the one that asks. */
  of(resource: string, asking: UnknownObject): PendingWrite[] {
    return [...this.#writes.values()].filter(
      (write) => write.resource === resource && write.object !== asking && this.#isUnderWay(resource, write),
    )
  }

  #isUnderWay(resource: string, { object: { metadata }, old }: PendingWrite): boolean {
    const found = this.#store.get({ resource, namespace: metadata.namespace ?? '', name: metadata.name ?? '' })
    return found?.metadata.resourceVersion === old?.metadata.resourceVersion
  }
}
