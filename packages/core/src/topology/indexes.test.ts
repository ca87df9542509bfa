import type { Machine } from '@capstan/api'
import { expect, test } from 'vitest'
import { isOfOtherVersion } from './indexes.ts'

// Upstream: internal/topology/check/upgrade.go, IsMachineDeploymentUpgrading.
test.each([
  ['v1.34.0', undefined, false],
  ['v1.34.0', '', false],
  ['v1.34.0', 'v1.34.0', false],
  ['v1.34.0', 'v1.33.0', true],
  ['v1.33.0', 'v1.34.0', true],
])(
  'a Machine of version %s with a kubelet of version %s is of another version than v1.34.0: %s',
  (version, kubeletVersion, expected) => {
    const status = kubeletVersion === undefined ? {} : { nodeInfo: { kubeletVersion } }
    expect(isOfOtherVersion({ spec: { version }, status } as Machine, 'v1.34.0')).toBe(expected)
  },
)
