/** In-memory store of one API server. Its content is lost when the process ends. */
import { CoreStore, type StoreOptions } from './core.ts'
import type { Store } from './store.ts'

export const memoryStore = (options: StoreOptions = {}): Store =>
  new CoreStore(undefined, { revision: 0, objects: [], changes: [] }, options)
