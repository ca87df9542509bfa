import { customResourceDefinition, type KubeObject, type UnknownObject } from '@capstan/kube'
import { LocalBootstrapConfig, LocalMachine, LocalMachinePool } from '@capstan/local'
import { describe, expect, test } from 'vitest'
import { providerManifests } from './manifests.ts'
import { xray } from './xray.ts'

const meta = (name: string) => ({ name, namespace: 'default', uid: name, resourceVersion: '1', creationTimestamp: '' })

const providerOf = (
  kind: typeof LocalMachine | typeof LocalMachinePool | typeof LocalBootstrapConfig,
  labels?: { [key: string]: string },
) => {
  const crd = customResourceDefinition(kind as typeof LocalMachine)
  const object = { ...crd, metadata: { ...crd.metadata, labels: labels ?? crd.metadata.labels } }
  return providerManifests([{ object: object as never, file: '', line: 1 }], { isRendered: false }).kinds[0]!
}

const machineOf = (spec: object, status: object): KubeObject =>
  ({ apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Machine', metadata: meta('m'), spec, status }) as KubeObject

const xrayOf = (
  object: { spec?: object; status?: object },
  {
    owner,
    labels,
    kind = LocalMachine,
  }: { owner?: KubeObject; labels?: { [key: string]: string }; kind?: Parameters<typeof providerOf>[0] } = {},
) =>
  xray({
    provider: providerOf(kind, labels),
    objects: new Map([['v1alpha1', { apiVersion: '', kind: kind.kind, metadata: meta('m'), ...object } as UnknownObject]]),
    owner,
  })

const row = (result: ReturnType<typeof xrayOf>, name: string) => result.rows.find((candidate) => candidate.name === name)!

describe('the chosen contract version', () => {
  test('is the newest version that the labels name, with the labels as the reason', () => {
    const labels = { 'cluster.x-k8s.io/v1beta1': 'v1alpha1', 'cluster.x-k8s.io/v1beta2': 'v1alpha1' }
    const result = xrayOf({}, { labels })
    expect(result).toMatchObject({ contractVersion: 'v1beta2', apiVersion: 'infrastructure.capstan.dev/v1alpha1' })
    expect(result.reason).toContain('cluster.x-k8s.io/v1beta2=v1alpha1, cluster.x-k8s.io/v1beta1=v1alpha1; v1beta2 is the newest')
  })

  test('is absent without a label of a contract version, and core reads no field', () => {
    const result = xrayOf({ spec: { providerID: 'x' } }, { labels: { 'cluster.x-k8s.io/provider': 'x' } })
    expect(result.contractVersion).toBeUndefined()
    expect(result.reason).toMatch(/^cannot find any versions matching contract versions/)
    expect(new Set(result.rows.map(({ conclusion }) => conclusion))).toEqual(new Set(['core reads nothing: no contract version']))
  })

  test('has a reason that names the API version if it is not served', () => {
    expect(xrayOf({}, { labels: { 'cluster.x-k8s.io/v1beta2': 'v9' } }).reason).toMatch(
      /v9 .*is not served: core cannot read the object$/,
    )
  })
})

test('shows a field in both contract versions, and reports a value as copied if the owner has it', () => {
  const owner = machineOf({ providerID: 'local:///m' }, { initialization: { infrastructureProvisioned: true } })
  const result = xrayOf({ spec: { providerID: 'local:///m' }, status: { initialization: { provisioned: true } } }, { owner })
  expect(row(result, 'providerID')).toMatchObject({ conclusion: 'copied to Machine.spec.providerID', isPending: false })
  expect(row(result, 'provisioned')).toMatchObject({
    versions: {
      v1beta2: { path: 'status.initialization.provisioned', value: true },
      v1beta1: { path: 'status.ready' },
    },
    isPending: false,
  })
})

test.each([
  [
    'a value before initialization is completed',
    {},
    'providerID',
    'not copied to Machine.spec.providerID before initialization is completed',
  ],
  ['an absent initialization field', {}, 'provisioned', 'core waits for status.initialization.provisioned'],
  [
    'an initialization field that is false',
    { initialization: { provisioned: false } },
    'provisioned',
    'core waits until status.initialization.provisioned is true',
  ],
  [
    'a copy that is missing',
    { initialization: { provisioned: true } },
    'providerID',
    'Machine.spec.providerID is absent: not copied',
  ],
  [
    'a parent field that is not an object',
    { initialization: 'yes' },
    'provisioned',
    'core fails: Cannot read status.initialization.provisioned: the parent of provisioned is not an object',
  ],
])('reports how core handles %s', (_, status, name, conclusion) => {
  const result = xrayOf({ spec: { providerID: 'x' }, status }, { owner: machineOf({}, {}) })
  expect(row(result, name)).toMatchObject({ conclusion, isPending: true })
})

test('reports that providerID is not copied without an owner', () => {
  expect(row(xrayOf({ spec: { providerID: 'x' } }), 'providerID').conclusion).toBe(
    'no owner: not copied to Machine.spec.providerID',
  )
})

test('finds the copy of dataSecretName in the MachinePool, and expects a copy of failureReason even while status.ready is false', () => {
  const bootstrap = { dataSecretName: 's' }
  const owner = {
    apiVersion: '',
    kind: 'MachinePool',
    metadata: meta('m'),
    spec: { template: { spec: { bootstrap } } },
  } as KubeObject
  const options = { owner, kind: LocalBootstrapConfig, labels: { 'cluster.x-k8s.io/v1beta1': 'v1alpha1' } }
  const result = xrayOf({ status: { dataSecretName: 's', ready: true, failureReason: 'Broken' } }, options)
  expect(row(result, 'dataSecretName').conclusion).toBe('copied to MachinePool.spec.template.spec.bootstrap.dataSecretName')
  const failed = xrayOf({ status: { dataSecretName: 's', ready: false, failureReason: 'Broken' } }, options)
  expect(row(failed, 'failureReason').conclusion).toBe(
    'MachinePool.status.deprecated.v1beta1.failureReason is absent: not copied',
  )
})

test('expects a copy of providerIDList when a pool reports status.ready without status.initialization', () => {
  const owner = { apiVersion: '', kind: 'MachinePool', metadata: meta('m') } as KubeObject
  const result = xrayOf({ spec: { providerIDList: ['a'] }, status: { ready: true } }, { owner, kind: LocalMachinePool })
  expect(row(result, 'providerIDList').conclusion).toBe('MachinePool.spec.providerIDList is absent: not copied')
})
