import type { Cluster, MachineSet } from '@capstan/api'
import { describe, expect, test } from 'vitest'
import type { External } from '../external/get.ts'
import type { FeatureGates } from '../feature-gates.ts'
import { preflightProblems } from './preflight.ts'
import { PreflightChecks } from './scope.ts'

const aControlPlane = (version: string | undefined, statusVersion?: string): External =>
  ({
    contract: 'v1beta2',
    kind: {},
    object: {
      kind: 'DevControlPlane',
      metadata: { namespace: 'default', name: 'cp' },
      spec: { version },
      status: { version: statusVersion ?? version },
    },
  }) as unknown as External

const aSet = (version: string | undefined, configRef?: object): MachineSet =>
  ({
    metadata: { namespace: 'default', name: 'set' },
    spec: { template: { spec: { version, bootstrap: { configRef } } } },
  }) as unknown as MachineSet

const aCluster = (version?: string, step?: string): Cluster =>
  ({
    metadata: { annotations: step ? { 'topology.internal.cluster.x-k8s.io/upgrade-step': step } : {} },
    spec: version ? { topology: { version } } : {},
  }) as unknown as Cluster

const kubeadm = { kind: 'KubeadmConfigTemplate', apiGroup: 'bootstrap.cluster.x-k8s.io', name: 'k' }

describe('preflight checks', () => {
  test.each([
    ['a MachineSet with the version of the control plane', aCluster('v1.34.0'), aSet('v1.34.0'), aControlPlane('v1.34.0'), []],
    ['a control plane without version', aCluster(), aSet('v1.34.0'), aControlPlane(undefined), []],
    [
      'a control plane that is provisioning',
      aCluster(),
      aSet('v1.34.0'),
      aControlPlane('v1.34.0', ''),
      ['DevControlPlane default/cp is provisioning ("ControlPlaneIsStable" preflight check failed)'],
    ],
    [
      'a control plane that is upgrading',
      aCluster(),
      aSet('v1.34.0'),
      aControlPlane('v1.35.0', 'v1.34.0'),
      ['DevControlPlane default/cp is upgrading ("ControlPlaneIsStable" preflight check failed)'],
    ],
    [
      'a control plane with a pending upgrade',
      aCluster('v1.35.0'),
      aSet('v1.34.0'),
      aControlPlane('v1.34.0'),
      ['DevControlPlane default/cp has a pending version upgrade to v1.35.0 ("ControlPlaneIsStable" preflight check failed)'],
    ],
    [
      'a MachineSet with the version of an upgrade step',
      aCluster('v1.36.0', 'v1.35.0'),
      aSet('v1.35.0'),
      aControlPlane('v1.35.0'),
      [],
    ],
    [
      'a MachineSet newer than the control plane',
      aCluster(),
      aSet('v1.35.0'),
      aControlPlane('v1.34.0'),
      [
        'MachineSet version (1.35.0) and ControlPlane version (1.34.0) do not conform to the kubernetes version skew policy as MachineSet version is higher than ControlPlane version ("KubernetesVersionSkew" preflight check failed)',
      ],
    ],
    [
      'a MachineSet more than 3 minor versions older than the control plane',
      aCluster(),
      aSet('v1.30.0'),
      aControlPlane('v1.34.0'),
      [
        'MachineSet version (1.30.0) and ControlPlane version (1.34.0) do not conform to the kubernetes version skew policy as MachineSet version is more than 3 minor versions older than the ControlPlane version ("KubernetesVersionSkew" preflight check failed)',
      ],
    ],
    [
      'kubeadm of another minor version than the control plane',
      aCluster(),
      aSet('v1.33.0', kubeadm),
      aControlPlane('v1.34.0'),
      [
        'MachineSet version (1.33.0) and ControlPlane version (1.34.0) do not conform to kubeadm version skew policy as kubeadm only supports joining with the same major+minor version as the control plane ("KubeadmVersionSkew" preflight check failed)',
      ],
    ],
    [
      'a MachineSet in a topology, before it has the version of the control plane',
      aCluster('v1.34.1'),
      aSet('v1.34.0'),
      aControlPlane('v1.34.1'),
      [
        'MachineSet version (v1.34.0) is not yet the same as the ControlPlane version (v1.34.1), waiting for version to be propagated to the MachineSet ("ControlPlaneVersionSkew" preflight check failed)',
      ],
    ],
  ])('return the problems of %s', (_, cluster, machineSet, controlPlane, problems) => {
    expect(preflightProblems({ checks: PreflightChecks, cluster, machineSet, controlPlane, gates: {} })).toEqual(problems)
  })

  test.each([
    [
      aSet(undefined),
      aControlPlane('latest'),
      'failed to parse version "latest" of ControlPlane default/cp: Invalid character(s) found in major number "0latest"',
    ],
    [
      aSet('v1.34-rc'),
      aControlPlane('v1.34.0'),
      'failed to parse version "v1.34-rc" of MachineSet default/set: Short version cannot contain PreRelease/Build meta data',
    ],
  ])('fail for a version that cannot be parsed (%#)', (machineSet, controlPlane, message) =>
    expect(() =>
      preflightProblems({ checks: PreflightChecks, cluster: aCluster(), machineSet, controlPlane, gates: {} }),
    ).toThrow(message),
  )

  test('find no problem when no check is requested', () => {
    const facts = { cluster: aCluster(), machineSet: aSet('v1.35.0'), controlPlane: aControlPlane('v1.34.0', '') }
    expect(preflightProblems({ ...facts, checks: [], gates: {} })).toEqual([])
  })

  test('do not read the topology while its feature gate is disabled', () => {
    const facts = { cluster: aCluster('v1.33.0'), machineSet: aSet('v1.34.0'), controlPlane: aControlPlane('v1.34.1') }
    const problems = (gates: FeatureGates) => preflightProblems({ ...facts, checks: PreflightChecks, gates })
    expect(problems({})).toHaveLength(2)
    expect(problems({ ClusterTopology: false })).toEqual([])
  })
})
