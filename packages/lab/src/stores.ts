/** Where the planes of one process keep their state: one store for the management plane, one for each simulated cluster. */
import type { Store } from '@capstan/apiserver'
import { memoryStore } from '@capstan/apiserver'

export interface Stores {
  /** The same name gives the same store. */
  store(name: string): Promise<Store>
  remove(name: string): Promise<void>
  close(): Promise<void>
}

/** Stores that live as long as the process. */
export function memoryStores(): Stores & { all(): readonly Store[] } {
  const stores = new Map<string, Store>()
  return {
    all: () => [...stores.values()],
    store(name) {
      const known = stores.get(name) ?? keptOpen(memoryStore())
      stores.set(name, known)
      return Promise.resolve(known)
    },
    remove(name) {
      stores.delete(name)
      return Promise.resolve()
    },
    close: () => Promise.resolve(),
  }
}

/** A server that stops closes its store; what is in memory must be there when it starts again. */
function keptOpen(store: Store): Store {
  store.close = () => Promise.resolve()
  return store
}
