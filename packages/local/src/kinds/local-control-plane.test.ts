import type { AdmissionContext } from '@capstan/kube'
import { draft } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { localKinds } from './all.ts'
import { LocalControlPlane } from './local-control-plane.ts'

const aControlPlane = (spec: Partial<LocalControlPlane['spec']> = {}): LocalControlPlane => ({
  apiVersion: 'controlplane.capstan.dev/v1alpha1',
  kind: 'LocalControlPlane',
  metadata: { name: 'demo', namespace: 'default', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: {
    replicas: 3,
    version: 'v1.36.0',
    machineTemplate: {
      spec: { infrastructureRef: { apiGroup: 'infrastructure.capstan.dev', kind: 'LocalMachineTemplate', name: 'demo' } },
    },
    ...spec,
  },
})
const context = (oldObject?: LocalControlPlane): AdmissionContext<LocalControlPlane> => ({
  operation: oldObject ? 'UPDATE' : 'CREATE',
  oldObject,
  dryRun: false,
})
const surge = (maxSurge: number) => ({ rollout: { strategy: { type: 'RollingUpdate' as const, rollingUpdate: { maxSurge } } } })

describe('a LocalControlPlane is rejected', () => {
  test.each([
    ['with no machine', { replicas: 0 }, 'spec.replicas: Forbidden: cannot be less than or equal to 0'],
    ['with two machines', { replicas: 2 }, 'spec.replicas: Forbidden: cannot be an even number when etcd is stacked'],
    [
      'with an invalid version',
      { version: 'vlatest' },
      'spec.version: Invalid value: "vlatest": must be a valid semantic version',
    ],
    [
      'with a version that skips a minor version',
      { version: 'v1.38.0' },
      'spec.version: Forbidden: cannot update Kubernetes version from 1.36.0 to 1.38.0',
    ],
    [
      'with one machine and a maxSurge of 0',
      { replicas: 1, ...surge(0) },
      'spec.rollout.strategy.rollingUpdate.maxSurge: Required value: when LocalControlPlane is configured to scale-in, replica count needs to be at least 3',
    ],
    ['with a surge of two', surge(2), 'spec.rollout.strategy.rollingUpdate.maxSurge: Required value: value must be 1 or 0'],
  ])('%s', (_, spec, message) => {
    const errors = LocalControlPlane.validate!(aControlPlane(spec), context(aControlPlane()))
    expect(errors.map((error) => `${error.field}: ${error.text}`)).toEqual([message])
  })
})

test.each([
  ['one machine', { replicas: 1 }],
  ['five machines', { replicas: 5 }],
  ['the next minor version', { version: 'v1.37.0' }],
  ['an older version', { version: 'v1.35.9' }],
  ['three machines and no surge', surge(0)],
])('a LocalControlPlane may have %s', (_, spec) => {
  expect(LocalControlPlane.validate!(aControlPlane(spec), context(aControlPlane()))).toEqual([])
})

test('defaults are one replica, the prefix v of the version and a surge of one, and are idempotent', () => {
  const { replicas: _, ...spec } = aControlPlane().spec
  const object: LocalControlPlane = { ...aControlPlane(), spec: { ...spec, version: '1.36.0' } }
  LocalControlPlane.default!(object, context())
  const afterFirstCall = draft(object)
  expect(object.spec).toMatchObject({ replicas: 1, version: 'v1.36.0', ...surge(1) })
  LocalControlPlane.default!(object, context())
  expect(object).toEqual(afterFirstCall)
})

describe('every kind', () => {
  test.each(localKinds.map((kind) => [kind.kind, kind] as const))('%s follows the contract for resources', (_, kind) => {
    expect(kind.scope).toBe('Namespaced')
    expect(kind.plural).toBe(`${kind.kind.toLowerCase()}s`)
    expect(kind.labels['cluster.x-k8s.io/v1beta2']).toBe(kind.version)
    expect(kind.statusSubresource).toBe(!kind.kind.endsWith('Template'))
  })
})

test('a template spec is immutable, except in a dry run of the topology controller', () => {
  const template = localKinds.find((kind) => kind.kind === 'LocalMachineTemplate')!
  const templateWithDelay = (delay: string, annotations = {}) =>
    ({
      ...aControlPlane(),
      metadata: { ...aControlPlane().metadata, annotations },
      spec: { template: { spec: { simulated: { provisioningDelay: delay } } } },
    }) as never
  const update = { operation: 'UPDATE' as const, oldObject: templateWithDelay('1s') }
  expect(template.validate!(templateWithDelay('2s'), { ...update, dryRun: false }).map((error) => error.text)).toEqual([
    'Invalid value: {"simulated":{"provisioningDelay":"2s"}}: LocalMachineTemplate spec.template.spec field is immutable. Please create new resource instead.',
  ])
  const dryRun = templateWithDelay('2s', { 'topology.cluster.x-k8s.io/dry-run': '' })
  expect(template.validate!(dryRun, { ...update, dryRun: true })).toEqual([])
})
