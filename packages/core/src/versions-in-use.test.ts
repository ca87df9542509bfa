import { aMachine } from '@capstan/testing'
import { expect, test } from 'vitest'
import { mergeVersions, versionsOfMachines } from './versions-in-use.ts'

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

test('sorts versions without a patch number or a leading v, too; builds that cannot be ordered (k3s2 and k3s10) keep the given order', () => {
  expect(merged('latest', 'v1.34.0+k3s2', 'v1.34.0+k3s10', '1.33.1', 'v1.32')?.map(({ version }) => version)).toEqual([
    'v1.32',
    '1.33.1',
    'v1.34.0+k3s2',
    'v1.34.0+k3s10',
    'latest',
  ])
})

test('versions of Machines are those of their Nodes, where known; builds that cannot be ordered are sorted by the age of their Machines', () => {
  const machine = (name: string, day: number, version: string, kubeletVersion?: string) =>
    aMachine({
      metadata: { name, creationTimestamp: `2026-01-0${day}T00:00:00Z` },
      spec: { version },
      ...(kubeletVersion ? { status: { nodeInfo: { kubeletVersion } } } : {}),
    } as never)
  const machines = [
    machine('a', 3, 'v1.34.0+k3s10'),
    machine('b', 2, 'v1.34.0+k3s10', 'v1.33.1'),
    machine('c', 1, 'v1.34.0+k3s2'),
    machine('d', 4, 'v1.34.0+k3s2'),
  ]
  expect(versionsOfMachines(machines)).toEqual([
    { version: 'v1.33.1', replicas: 1 },
    { version: 'v1.34.0+k3s2', replicas: 2 },
    { version: 'v1.34.0+k3s10', replicas: 1 },
  ])
})

test('returns undefined without versions', () => {
  expect(mergeVersions([])).toBeUndefined()
})
