import type { MachinePool } from '@capstan/api'
import { expect, test } from 'vitest'
import { isUpgradingNodes } from './current-state.ts'

const nodeRefs = [{ name: 'a' }]

test.each([
  ['has no status', undefined, false],
  ['has no Nodes', {}, false],
  ['has Nodes of its version', { nodeRefs, versions: [{ version: 'v1.36.0', replicas: 1 }] }, false],
  [
    'has a Node of another version',
    {
      nodeRefs,
      versions: [
        { version: 'v1.35.0', replicas: 1 },
        { version: 'v1.36.0', replicas: 1 },
      ],
    },
    true,
  ],
  // The replacement of the only Node deletes it before the new Node joins.
  ['refers to Nodes without a known version', { nodeRefs }, true],
])('whether a MachinePool that %s is upgrading', (_, status, expected) => {
  const pool = { spec: { template: { spec: { version: 'v1.36.0' } } }, status } as MachinePool
  expect(isUpgradingNodes(pool)).toBe(expected)
})
