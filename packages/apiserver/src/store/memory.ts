/** State of one API server in memory; it ends with the process. */
import { CoreStore, type StoreOptions } from './core.ts'
import type { Store } from './store.ts'

export const memoryStore = (options: StoreOptions = {}): Store =>
  new CoreStore(undefined, { revision: 0, objects: [], changes: [] }, options)
