import { describe } from 'vitest'
import { memoryStore } from './memory.ts'
import { storeSuite } from './store.suite.ts'

describe('the memory store', () => storeSuite((options) => Promise.resolve(memoryStore(options))))
