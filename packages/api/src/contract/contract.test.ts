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
import { failureDomainsOf, InfraClusterContract } from './infra-cluster.ts'

const crd = (labels: { [key: string]: string }) =>
  ({ apiVersion: '', kind: '', metadata: { name: 'foos.example.com', labels } }) as never

describe('latestContract', () => {
  test.each([
    [
      'the newest contract first',
      { 'cluster.x-k8s.io/v1beta1': 'v1alpha3', 'cluster.x-k8s.io/v1beta2': 'v1beta1' },
      'v1beta2',
      'v1beta1',
    ],
    ['the greatest version, not the last one listed', { 'cluster.x-k8s.io/v1beta2': 'v1_v1beta2_v1alpha9' }, 'v1beta2', 'v1'],
    ['an empty label as none', { 'cluster.x-k8s.io/v1beta2': '', 'cluster.x-k8s.io/v1beta1': 'v1beta1' }, 'v1beta1', 'v1beta1'],
  ])('takes %s', (_, labels, contract, version) => expect(latestContract(crd(labels))).toEqual({ contract, version }))

  it('says which labels it looked for', () => {
    expect(() => latestContract(crd({ 'cluster.x-k8s.io/v1alpha4': 'v1' }))).toThrow(
      'cannot find any versions matching contract versions ["v1beta2" "v1beta1"] for CRD foos.example.com as contract version label(s) are either missing or empty (see https://cluster-api.sigs.k8s.io/developer/providers/contracts/overview.html#api-version-labels)',
    )
  })
})

it('tells the contract of one API version, the newest where several labels hold it', () => {
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

  it('hold time limits as numbers in v1beta2 and as Go durations in v1beta1', () => {
    const object = {}
    writeSeconds(object, ControlPlaneContract.nodeDrainTimeout, 'v1beta2', 90)
    writeSeconds(object, ControlPlaneContract.nodeDrainTimeout, 'v1beta1', 3690)
    expect(object).toEqual({
      spec: { machineTemplate: { nodeDrainTimeout: '1h1m30s', spec: { deletion: { nodeDrainTimeoutSeconds: 90 } } } },
    })
  })
})

it('reads failure domains of either contract version, sorted', () => {
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

describe('a control plane', () => {
  const of = (spec: object, status: object) => ({ spec, status })
  test.each([
    ['no version yet', of({ version: 'v1.36.0' }, {}), true, false],
    ['its version', of({ version: 'v1.36.0' }, { version: 'v1.36.0' }), false, false],
    ['an older version', of({ version: 'v1.36.0' }, { version: 'v1.35.0' }), false, true],
    ['two versions', of({ version: 'v1.36.0' }, { versions: [{ version: 'v1.35.0' }, { version: 'v1.36.0' }] }), false, true],
    ['another build', of({ version: 'v1.36.0+b' }, { versions: [{ version: 'v1.36.0+a' }] }), false, true],
    ['a newer version', of({ version: 'v1.35.0' }, { versions: [{ version: 'v1.36.0' }] }), false, false],
  ])('that reports %s: provisioning, upgrading', (_, object, provisioning, upgrading) => {
    expect([isProvisioning(object, 'v1beta2'), isUpgrading(object, 'v1beta2')]).toEqual([provisioning, upgrading])
  })

  it('is refused when its versions are not from old to new', () => {
    const object = of({}, { versions: [{ version: 'v1.36.0' }, { version: 'v1.35.0' }] })
    expect(() => currentStatusVersion(object, 'v1beta2')).toThrow('version "v1.36.0" and "v1.35.0" are in the wrong order')
  })

  it('of contract v1beta1 tells what is not available', () => {
    expect(availableReplicasOf(of({ replicas: 3 }, { unavailableReplicas: 1 }), 'v1beta1')).toBe(2)
    expect(availableReplicasOf(of({ replicas: 3 }, { availableReplicas: 3 }), 'v1beta2')).toBe(3)
  })
})
