/** The stores of a process: one for its embedded management cluster, if it runs one, and one for each simulated workload cluster. */
import type { Store } from '@capstan/apiserver'
import { memoryStore } from '@capstan/apiserver'

export interface Stores {
  /** Returns the store with this name, or creates it. Until the store is removed or closed, each call returns the same store. */
  store(name: string): Promise<Store>
  remove(name: string): Promise<void>
  close(): Promise<void>
}

/** Returns stores in memory. Their data are lost when the process ends. */
export function memoryStores(): Stores & { all(): readonly Store[] } {
  const stores = new Map<string, Store>()
  return {
    all: () => [...stores.values()],
    store(name) {
      const store = stores.get(name) ?? keptOpen(memoryStore())
      stores.set(name, store)
      return Promise.resolve(store)
    },
    remove(name) {
      stores.delete(name)
      return Promise.resolve()
    },
    close: () => Promise.resolve(),
  }
}

/** Replaces `close` by a function that does nothing, so that a restarted server in this process finds the data of the store. */
function keptOpen(store: Store): Store {
  store.close = () => Promise.resolve()
  return store
}
