import type { Machine } from '@capstan/api'
import type { UnknownObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import type { LocalBootstrapConfig } from '../kinds/local-bootstrap-config.ts'
import type { LocalControlPlane } from '../kinds/local-control-plane.ts'
import { outdatedReasons } from './up-to-date.ts'

const metadata = { name: 'm1', namespace: 'default', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' }
const now = Date.UTC(2026, 0, 2)
const ref = { apiGroup: 'infrastructure.capstan.dev', kind: 'LocalMachineTemplate', name: 'cp' }

const controlPlane = (spec: Partial<LocalControlPlane['spec']> = {}) =>
  ({
    metadata,
    spec: { version: 'v1.36.0', machineTemplate: { spec: { infrastructureRef: ref } }, ...spec },
  }) as LocalControlPlane
const machine = { metadata, spec: { version: 'v1.36.0' } } as Machine
const clonedFrom = (name: string, groupKind = 'LocalMachineTemplate.infrastructure.capstan.dev') =>
  ({
    kind: 'LocalMachine',
    metadata: {
      ...metadata,
      annotations: { 'cluster.x-k8s.io/cloned-from-name': name, 'cluster.x-k8s.io/cloned-from-groupkind': groupKind },
    },
  }) as unknown as UnknownObject
const bootstrap = (spec: LocalBootstrapConfig['spec']) => ({ metadata, spec }) as LocalBootstrapConfig

test.each([
  ['no differences', {}, { infrastructure: clonedFrom('cp'), bootstrap: bootstrap({}) }, []],
  ['objects that do not exist', {}, {}, []],
  ['infrastructure without annotations that name its template', {}, { infrastructure: { kind: 'X', metadata } as never }, []],
  ['another version', { version: 'v1.37.0' }, {}, ['Version v1.36.0, v1.37.0 required']],
  ['another template', {}, { infrastructure: clonedFrom('old') }, ['LocalMachine is not up-to-date']],
  [
    'a template of another kind',
    {},
    { infrastructure: clonedFrom('cp', 'DevMachineTemplate.x') },
    ['LocalMachine is not up-to-date'],
  ],
  [
    'another bootstrap spec',
    { bootstrapConfigSpec: { nodeLabels: { a: '1' } } },
    { bootstrap: bootstrap({}) },
    ['LocalBootstrapConfig is not up-to-date'],
  ],
  [
    'the same bootstrap spec',
    { bootstrapConfigSpec: { nodeLabels: { a: '1' } } },
    { bootstrap: bootstrap({ nodeLabels: { a: '1' } }) },
    [],
  ],
  ['a rollout that is due', { rollout: { after: '2026-01-01T12:00:00Z' } }, {}, ['LocalControlPlane spec.rollout.after expired']],
  ['a future rollout.after', { rollout: { after: '2026-01-03T00:00:00Z' } }, {}, []],
  ['a rollout.after before the creation of the Machine', { rollout: { after: '2025-12-31T00:00:00Z' } }, {}, []],
] as const)('returns the reasons why a Machine is not up to date, or no reason: %s', (_, spec, objects, expected) => {
  expect(outdatedReasons(controlPlane(spec as never), { machine, ...objects }, now)).toEqual(expected)
})
