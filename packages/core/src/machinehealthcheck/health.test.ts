import type { Cluster, Machine, MachineHealthCheck } from '@capstan/api'
import type { Node } from '@capstan/kube'
import { expect, test } from 'vitest'
import { healthOf, type Target } from './health.ts'

const condition = (type: string, status: string) => ({ type, status, reason: 'x', lastTransitionTime: '2026-01-01T00:00:00Z' })
const clusterWith = (isProvisioned: boolean): Cluster =>
  ({
    status: {
      conditions: [
        condition('ControlPlaneInitialized', 'True'),
        condition('InfrastructureReady', isProvisioned ? 'True' : 'False'),
      ],
    },
  }) as never
const healthCheck = {
  spec: { checks: { unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds: 0 }] } },
} as MachineHealthCheck
const machine = { metadata: { name: 'm' }, status: { nodeRef: { name: 'n' } } } as Machine
const withNode: Target = {
  machine,
  node: { state: 'found', node: { status: { conditions: [condition('Ready', 'False')] } } as Node },
}

/**
 * Upstream, while the infrastructure is not ready: needsRemediation checks only for the annotation remediate-machine, and
 * healthCheckTargets counts a Machine with a Node as healthy unless it is being deleted.
 */
test.each([
  ['is unhealthy by the condition of its Node when the infrastructure is ready', true, withNode, 'unhealthy'],
  ['is healthy while the infrastructure of its Cluster is not ready', false, withNode, 'healthy'],
  [
    'has no known health without a Node while the infrastructure is not ready',
    false,
    { machine, node: { state: 'none' } },
    'unknown',
  ],
  [
    'has no known health while it is being deleted and the infrastructure is not ready',
    false,
    { ...withNode, machine: { ...machine, metadata: { ...machine.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } } },
    'unknown',
  ],
] as const)('a Machine %s', (_, isProvisioned, target, kind) => {
  const health = healthOf(target as Target, healthCheck, clusterWith(isProvisioned), Date.parse('2026-01-02T00:00:00Z'))
  expect(health.kind).toBe(kind)
})

test.each([
  ['is unhealthy at once', {}, [], 'unhealthy'],
  [
    'is checked again after 15 s if it is being deleted and has not reported NodeDeleted',
    { deletionTimestamp: '2026-01-02T00:00:00Z' },
    [],
    { after: 15_000 },
  ],
  [
    'is unhealthy while it is being deleted, 15 s after it reported NodeDeleted',
    { deletionTimestamp: '2026-01-01T00:00:00Z' },
    [{ ...condition('NodeReady', 'False'), reason: 'NodeDeleted', lastTransitionTime: '2026-01-01T23:59:45Z' }],
    'unhealthy',
  ],
])('a Machine whose Node was deleted %s', (_, metadata, conditions, expected) => {
  const withoutNode = { metadata: { name: 'm', ...metadata }, status: { nodeRef: { name: 'n' }, conditions } } as never as Machine
  const target: Target = { machine: withoutNode, node: { state: 'deleted', name: 'n' } }
  const health = healthOf(target, healthCheck, clusterWith(true), Date.parse('2026-01-02T00:00:00Z'))
  expect(health).toMatchObject(typeof expected === 'string' ? { kind: expected } : { kind: 'pending', ...expected })
})
