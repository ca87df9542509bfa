import { expect, test } from 'vitest'
import { freePorts } from './programs.ts'

test('returns each free port once, also to callers at the same time', async () => {
  const ports = (await Promise.all(Array.from({ length: 20 }, () => freePorts(20)))).flat()
  expect(new Set(ports).size).toBe(400)
})
