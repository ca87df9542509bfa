import type { DeclaredKind, JSONSchema } from '@capstan/kube'
import { localKinds } from '@capstan/local'
import { expect, test } from 'vitest'
import { oldTwins } from './contract-twin.ts'

/** Twins of the local provider's kinds: the same kinds with the label, fields and paths of contract v1beta1. */
const twins = new Map(oldTwins(localKinds as readonly DeclaredKind[]).map((kind) => [kind.kind, kind]))

/** Returns the type of a field in the twin's schema; `undefined` if the field does not exist. */
const typeOf = (kind: string, path: string): string | undefined =>
  path.split('.').reduce<JSONSchema | undefined>((schema, name) => schema?.properties?.[name], twins.get(kind)!.schema)?.type

test('the twin of every kind of the local provider has the label of contract v1beta1, and not that of v1beta2', () => {
  for (const { labels } of twins.values()) {
    expect(labels).toMatchObject({ 'cluster.x-k8s.io/v1beta1': 'v1alpha1' })
    expect(labels).not.toHaveProperty(['cluster.x-k8s.io/v1beta2'])
  }
})

test.each([
  ['LocalCluster', 'status.ready', 'boolean', 'status.initialization.provisioned'],
  ['LocalMachine', 'status.ready', 'boolean', 'status.initialization.provisioned'],
  ['LocalMachinePool', 'status.ready', 'boolean', 'status.initialization.provisioned'],
  ['LocalBootstrapConfig', 'status.ready', 'boolean', 'status.initialization.dataSecretCreated'],
  ['LocalControlPlane', 'status.initialized', 'boolean', 'status.initialization.controlPlaneInitialized'],
  ['LocalControlPlane', 'status.updatedReplicas', 'integer', 'status.upToDateReplicas'],
  ['LocalControlPlane', 'status.unavailableReplicas', 'integer', 'status.availableReplicas'],
  [
    'LocalControlPlane',
    'spec.machineTemplate.nodeDrainTimeout',
    'string',
    'spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds',
  ],
  ['LocalControlPlane', 'spec.machineTemplate.infrastructureRef', 'object', 'spec.machineTemplate.spec.infrastructureRef'],
  ['LocalControlPlane', 'spec.machineTemplate.readinessGates', 'array', 'spec.machineTemplate.spec.readinessGates'],
])('the twin of %s has %s of type %s instead of %s', (kind, oldPath, type, newPath) => {
  expect(typeOf(kind, oldPath)).toBe(type)
  expect(typeOf(kind, newPath)).toBeUndefined()
})

test('failure domains of contract v1beta1 are a map', () => {
  expect(typeOf('LocalCluster', 'status.failureDomains')).toBe('object')
})
