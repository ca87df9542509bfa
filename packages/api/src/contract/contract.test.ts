import { describe, expect, it, test } from 'vitest'
import { readField, writeField } from './field.ts'
import { contractOfVersion, latestContract } from './contract-labels.ts'
import {
  availableReplicasOf,
  ControlPlaneContract,
  currentStatusVersion,
  isProvisioning,
  isUpgrading,
  writeSeconds,
} from './control-plane.ts'
import {
  InfraMachinePoolContract,
  infrastructureMachineKindOf,
  isPoolProvisioned,
  poolReplicasOf,
  providerIDsOf,
} from './infra-machine-pool.ts'
import { failureDomainsOf, InfraClusterContract } from './infra-cluster.ts'
import { addressesOf } from './infra-machine.ts'

const crd = (labels: { [key: string]: string }) =>
  ({ apiVersion: '', kind: '', metadata: { name: 'foos.example.com', labels } }) as never

describe('latestContract', () => {
  test.each([
    [
      'the newest contract',
      { 'cluster.x-k8s.io/v1beta1': 'v1alpha3', 'cluster.x-k8s.io/v1beta2': 'v1beta1' },
      'v1beta2',
      'v1beta1',
    ],
    ['the greatest version, not the last in the list', { 'cluster.x-k8s.io/v1beta2': 'v1_v1beta2_v1alpha9' }, 'v1beta2', 'v1'],
    [
      'no version from an empty label',
      { 'cluster.x-k8s.io/v1beta2': '', 'cluster.x-k8s.io/v1beta1': 'v1beta1' },
      'v1beta1',
      'v1beta1',
    ],
  ])('returns %s', (_, labels, contract, version) => expect(latestContract(crd(labels))).toEqual({ contract, version }))

  it('names the supported contract versions in its error', () => {
    expect(() => latestContract(crd({ 'cluster.x-k8s.io/v1alpha4': 'v1' }))).toThrow(
      'cannot find any versions matching contract versions ["v1beta2" "v1beta1"] for CRD foos.example.com as contract version label(s) are either missing or empty (see https://cluster-api.sigs.k8s.io/developer/providers/contracts/overview.html#api-version-labels)',
    )
  })
})

it('contractOfVersion returns the newest contract whose label names the API version, and throws if no label does', () => {
  const labels = {
    'cluster.x-k8s.io/v1beta1': 'v1beta1',
    'cluster.x-k8s.io/v1beta2': 'v1beta1_v1',
    'cluster.x-k8s.io/provider': 'x',
  }
  expect(contractOfVersion(crd(labels), 'v1beta1')).toBe('v1beta2')
  expect(() => contractOfVersion(crd(labels), 'v2')).toThrow(
    'cannot find any contract version matching version v2 for CRD foos.example.com',
  )
})

describe('fields', () => {
  it('are read and written at the path of the contract version', () => {
    const object = {}
    writeField(object, InfraClusterContract.provisioned, 'v1beta2', true)
    writeField(object, InfraClusterContract.provisioned, 'v1beta1', false)
    expect(object).toEqual({ status: { initialization: { provisioned: true }, ready: false } })
    expect(readField(object, InfraClusterContract.provisioned, 'v1beta2')).toBe(true)
  })

  it('contain timeouts as numbers of seconds in v1beta2 and as Go durations in v1beta1', () => {
    const object = {}
    writeSeconds(object, ControlPlaneContract.nodeDrainTimeout, 'v1beta2', 90)
    writeSeconds(object, ControlPlaneContract.nodeDrainTimeout, 'v1beta1', 3690)
    expect(object).toEqual({
      spec: { machineTemplate: { nodeDrainTimeout: '1h1m30s', spec: { deletion: { nodeDrainTimeoutSeconds: 90 } } } },
    })
  })
})

it('reads failure domains of either contract version, sorted by name', () => {
  const sorted = [
    { name: 'a', controlPlane: false, attributes: { rack: '7' } },
    { name: 'b', controlPlane: true },
  ]
  const list = {
    status: {
      failureDomains: [
        { name: 'b', controlPlane: true },
        { name: 'a', attributes: { rack: '7' } },
      ],
    },
  }
  const map = { status: { failureDomains: { b: { controlPlane: true }, a: { attributes: { rack: '7' } } } } }
  expect(failureDomainsOf(list, 'v1beta2')).toEqual(sorted)
  expect(failureDomainsOf(map, 'v1beta1')).toEqual(sorted)
  expect(failureDomainsOf({}, 'v1beta2')).toEqual([])
})

test('status.failureDomains is rejected: a list in contract v1beta1', () => {
  const read = () => failureDomainsOf({ status: { failureDomains: [{ name: 'a' }] } }, 'v1beta1')
  expect(read).toThrow('status.failureDomains: expected a map, got list')
})

// The API server would reject the whole status of a Cluster with these failure domains.
test.each([
  ['a number', 7, 'expected a list, got number'],
  ['a map in contract v1beta2', { a: {} }, 'expected a list, got object'],
  ['more than 100', Array.from({ length: 101 }, (_, i) => ({ name: `d${i}` })), 'expected at most 100 entries, got 101'],
  ['equal names', [{ name: 'a' }, { name: 'a' }], 'expected unique names, got a twice'],
  ['a name that is a number', [{ name: 1 }], 'expected entries with a name'],
  ['entries that are not objects', ['a'], 'expected entries with a name'],
])('status.failureDomains is rejected: %s', (_, failureDomains, message) => {
  expect(() => failureDomainsOf({ status: { failureDomains } }, 'v1beta2')).toThrow(`status.failureDomains: ${message}`)
})

describe('addresses', () => {
  const address = { type: 'InternalIP', address: '10.0.0.1' }
  test('are those of the infrastructure machine, if it reports any', () => {
    expect(addressesOf({ status: { addresses: [address] } }, 'v1beta2')).toEqual([address])
    expect(addressesOf({ status: { addresses: Array(256).fill(address) } }, 'v1beta1')).toHaveLength(256)
    expect(addressesOf({}, 'v1beta2')).toBeUndefined()
  })

  test.each([
    ['a number', 7, ': expected a list, got number'],
    ['more than 256', Array(257).fill(address), ': expected at most 256 entries, got 257'],
    ['null as an address', [null], '[0].type: expected one of Hostname, ExternalIP, InternalIP, ExternalDNS, InternalDNS'],
    [
      'an empty address',
      [address, { ...address, address: '' }],
      '[1].address: expected a string of 1 to 256 characters, got 0 characters',
    ],
  ])('are rejected: %s', (_, addresses, message) => {
    expect(() => addressesOf({ status: { addresses } }, 'v1beta2')).toThrow(`status.addresses${message}`)
  })
})

describe('a control plane', () => {
  const controlPlane = (spec: object, status: object) => ({ spec, status })
  const neither = 'neither provisioning nor upgrading'
  test.each([
    ['no version yet', 'provisioning', controlPlane({ version: 'v1.36.0' }, {})],
    ['the version of its spec', neither, controlPlane({ version: 'v1.36.0' }, { version: 'v1.36.0' })],
    ['an older version', 'upgrading', controlPlane({ version: 'v1.36.0' }, { version: 'v1.35.0' })],
    [
      'two versions',
      'upgrading',
      controlPlane({ version: 'v1.36.0' }, { versions: [{ version: 'v1.35.0' }, { version: 'v1.36.0' }] }),
    ],
    ['another build', 'upgrading', controlPlane({ version: 'v1.36.0+b' }, { versions: [{ version: 'v1.36.0+a' }] })],
    ['a newer version', neither, controlPlane({ version: 'v1.35.0' }, { versions: [{ version: 'v1.36.0' }] })],
  ])('that reports %s is %s', (_, state, object) => {
    expect(isProvisioning(object, 'v1beta2')).toBe(state === 'provisioning')
    expect(isUpgrading(object, 'v1beta2')).toBe(state === 'upgrading')
  })

  it('is rejected when its versions are not in ascending order', () => {
    const object = controlPlane({}, { versions: [{ version: 'v1.36.0' }, { version: 'v1.35.0' }] })
    expect(() => currentStatusVersion(object, 'v1beta2')).toThrow('version "v1.36.0" and "v1.35.0" are in the wrong order')
  })

  it('reports available replicas in contract v1beta2; in v1beta1 they are computed from the unavailable replicas', () => {
    expect(availableReplicasOf(controlPlane({ replicas: 3 }, { unavailableReplicas: 1 }), 'v1beta1')).toBe(2)
    expect(availableReplicasOf(controlPlane({ replicas: 3 }, { availableReplicas: 3 }), 'v1beta2')).toBe(3)
  })
})

describe('an InfraMachinePool', () => {
  test.each([
    ['initialization.provisioned is true', 'v1beta2', { initialization: { provisioned: true } }],
    ['ready is true and initialization.provisioned is absent', 'v1beta2', { ready: true }],
    ['ready is true in contract v1beta1', 'v1beta1', { ready: true, initialization: { provisioned: false } }],
  ] as const)('is provisioned when %s', (_, contract, status) => {
    expect(isPoolProvisioned({ status }, contract)).toBe(true)
  })

  test.each([
    ['initialization.provisioned is false, although ready is true', { ready: true, initialization: { provisioned: false } }],
    ['neither field is reported', {}],
  ])('is not provisioned when %s', (_, status) => {
    expect(isPoolProvisioned({ status }, 'v1beta2')).toBe(false)
  })

  it('has no provider IDs, replicas or machine kind before it reports them', () => {
    expect(providerIDsOf({}, 'v1beta2')).toEqual([])
    expect(poolReplicasOf({}, 'v1beta2')).toBeUndefined()
    expect(infrastructureMachineKindOf({ status: { infrastructureMachineKind: '' } }, 'v1beta2')).toBeUndefined()
  })

  test.each([
    [
      'spec.providerIDList: expected a list of strings, got string',
      () => providerIDsOf({ spec: { providerIDList: 'a' } }, 'v1beta2'),
    ],
    [
      'spec.providerIDList[1]: expected a string of 1 to 512 characters, got number',
      () => providerIDsOf({ spec: { providerIDList: ['a', 7] } }, 'v1beta2'),
    ],
    [
      'spec.providerIDList[0]: expected a string of 1 to 512 characters, got 513 characters',
      () => providerIDsOf({ spec: { providerIDList: ['x'.repeat(513)] } }, 'v1beta2'),
    ],
    [
      'spec.providerIDList: expected at most 10000 entries, got 10001',
      () => providerIDsOf({ spec: { providerIDList: Array(10_001).fill('a') } }, 'v1beta2'),
    ],
    ['status.replicas: expected a 32-bit integer, got string', () => poolReplicasOf({ status: { replicas: '3' } }, 'v1beta2')],
    ['status.replicas: expected a 32-bit integer, got 1.5', () => poolReplicasOf({ status: { replicas: 1.5 } }, 'v1beta2')],
    [
      'status.initialization.provisioned: expected a boolean, got string',
      () => isPoolProvisioned({ status: { initialization: { provisioned: 'yes' } } }, 'v1beta2'),
    ],
    [
      'status.infrastructureMachineKind: expected a string, got object',
      () => infrastructureMachineKindOf({ status: { infrastructureMachineKind: {} } }, 'v1beta2'),
    ],
  ])('with an invalid field is rejected: %s', (message, read) => expect(read).toThrow(message))

  it('has the same field paths in both contract versions, except for `provisioned`', () => {
    const differing = Object.entries(InfraMachinePoolContract).filter(([, { paths }]) => paths.v1beta1 !== paths.v1beta2)
    expect(differing.map(([name]) => name)).toEqual(['provisioned'])
  })
})
