import { describe } from 'vitest'
import { memoryStore } from './memory.ts'
import { holdPacked } from './packed.ts'
import { storeSuite } from './store.suite.ts'

describe('the memory store', () => storeSuite((options) => Promise.resolve(memoryStore(options))))

describe('the memory store, packed', () =>
  storeSuite((options) => Promise.resolve(memoryStore({ ...options, hold: holdPacked(1) }))))
