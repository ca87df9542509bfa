import { describe } from 'vitest'
import { memoryStore } from './memory.ts'
import { packedObjects } from './packed.ts'
import { storeSuite } from './store.suite.ts'

describe('the memory store', () => storeSuite((options) => Promise.resolve(memoryStore(options))))

describe('the memory store with packed objects', () =>
  storeSuite((options) => Promise.resolve(memoryStore({ ...options, encode: packedObjects(1) }))))
