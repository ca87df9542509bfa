import { expect, test } from 'vitest'
import { mergeVersions } from './versions-in-use.ts'

const merged = (...versions: string[]) => mergeVersions(versions.map((version) => ({ version, replicas: 1 })))

test('returns each version once, in ascending order, with the sum of its replicas', () => {
  expect(merged('v1.34.0', 'v1.9.3', 'v1.34.0')).toEqual([
    { version: 'v1.9.3', replicas: 1 },
    { version: 'v1.34.0', replicas: 2 },
  ])
})

test('distinguishes builds, and sorts invalid versions last', () => {
  expect(merged('latest', 'v1.34.0+b.2', 'v1.34.0+b.1', 'v1.34.0-rc.1')?.map(({ version }) => version)).toEqual([
    'v1.34.0-rc.1',
    'v1.34.0+b.1',
    'v1.34.0+b.2',
    'latest',
  ])
})

test('returns undefined without versions', () => {
  expect(mergeVersions([])).toBeUndefined()
})
