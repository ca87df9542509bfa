/** Inputs for the admission of Machines and of kinds that create Machines. */
import { Machine, MachineDeployment, MachinePool, MachineSet } from '@capstan/api'
import type { Input } from '@capstan/kube'
import { clusterName, machine, machineDeployment, machineSet } from '../../objects.ts'
import { stub } from '../../stub-kinds.ts'
import type { Cases } from '../../twin.ts'
import {
  admission,
  type Change,
  each,
  machineSpecChanges,
  metadataChanges,
  namingChanges,
  replicasChanges,
  selectorChanges,
  templateMetadataChanges,
} from './table.ts'

const inTemplate = (spec: object) => ({ spec: { template: { spec } } })
const intOrPercent = [0, 1, -1, '0%', '10%', '110%', 'ten', '10', '-5%']

const strategies = each(
  'strategy',
  [
    null,
    { type: 'RollingUpdate' },
    { type: 'OnDelete' },
    { type: 'OnDelete', rollingUpdate: { maxSurge: 1 } },
    { type: 'Recreate' },
    { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } },
    { type: 'RollingUpdate', rollingUpdate: { maxSurge: '0%', maxUnavailable: '0%' } },
    { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: '0%' } },
    { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0 } },
    ...intOrPercent.map((maxSurge) => ({ type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable: 1 } })),
    ...intOrPercent.map((maxUnavailable) => ({ type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable } })),
  ],
  (strategy) => ({ spec: { rollout: { strategy } } }),
)

const deletionOrders = each('deletion order', ['Random', 'Newest', 'Oldest', 'Odd', '', null], (order) => ({
  spec: { deletion: { order } },
}))

const preflightChecks = each(
  'skipped preflight checks',
  ['', 'All', 'KubernetesVersionSkew', 'KubeadmVersionSkew, ControlPlaneIsStable', 'Nothing', 'All,Nothing', 'all'],
  (checks) => ({ metadata: { annotations: { 'machineset.cluster.x-k8s.io/skip-preflight-checks': checks } } }),
)

const poolSpec = {
  clusterName,
  version: 'v1.35.0',
  bootstrap: { dataSecretName: 'data' },
  infrastructureRef: { apiGroup: stub.group, kind: 'StubMachine', name: 'p' },
}
const machinePool: Input<MachinePool> = {
  metadata: { name: 'p' },
  spec: { clusterName, replicas: 1, template: { spec: poolSpec } },
}

/** Causes several errors, so that their order is compared, too. */
const severalErrors: Change = [
  'several errors',
  {
    metadata: { annotations: { 'machineset.cluster.x-k8s.io/skip-preflight-checks': 'Nothing' } },
    spec: {
      clusterName: 'other',
      selector: { matchLabels: { role: 'worker' } },
      machineNaming: { template: 'fixed' },
      rollout: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 'x', maxUnavailable: 'y' } } },
      remediation: { maxInFlight: 'z' },
      template: {
        metadata: { labels: { 'not valid': '' }, annotations: { 'not valid': '' } },
        spec: {
          bootstrap: { configRef: null },
          version: 'v1',
          taints: [
            { key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule', propagation: 'Always' },
            { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule', propagation: 'Always' },
          ],
        },
      },
    },
  },
]

export const machineAdmissionCases: Cases = {
  'admission-machine': admission({
    kind: Machine,
    valid: machine('m'),
    changes: [
      ...metadataChanges,
      ...machineSpecChanges((spec) => ({ spec })),
      [
        'a Machine of a pool without bootstrap',
        { metadata: { labels: { 'cluster.x-k8s.io/pool-name': 'p' } }, spec: { bootstrap: { configRef: null } } },
      ],
    ],
  }),
  'admission-machineset': admission({
    kind: MachineSet,
    valid: machineSet('ms'),
    changes: [
      ...metadataChanges,
      ...machineSpecChanges(inTemplate),
      ...templateMetadataChanges,
      ...replicasChanges,
      ...selectorChanges,
      ...namingChanges,
      ...deletionOrders,
      ...preflightChecks,
      ...each('clusterName', ['other', '', null], (name) => ({ spec: { clusterName: name } })),
      ['both clusterNames', { spec: { clusterName: 'other', template: { spec: { clusterName: 'other' } } } }],
      severalErrors,
    ],
  }),
  'admission-machinedeployment': admission({
    kind: MachineDeployment,
    valid: machineDeployment('md'),
    changes: [
      ...metadataChanges,
      ...machineSpecChanges(inTemplate),
      ...templateMetadataChanges,
      ...replicasChanges,
      ...selectorChanges,
      ...namingChanges,
      ...deletionOrders,
      ...strategies,
      ...each('maxInFlight', intOrPercent, (maxInFlight) => ({ spec: { remediation: { maxInFlight } } })),
      ...each('rollout after', ['2020-01-01T00:00:00Z', 'yesterday', null], (after) => ({ spec: { rollout: { after } } })),
      ...each('paused', [true, false, 'yes'], (paused) => ({ spec: { paused } })),
      ...each('clusterName', ['other', '', null], (name) => ({ spec: { clusterName: name } })),
      ['both clusterNames', { spec: { clusterName: 'other', template: { spec: { clusterName: 'other' } } } }],
      severalErrors,
      ['a long name', { metadata: { name: `a${'b'.repeat(63)}` } }],
      ['a name with a dot', { metadata: { name: 'a.b' } }],
    ],
  }),
  'admission-machinepool': admission({
    kind: MachinePool,
    valid: machinePool,
    changes: [
      ...metadataChanges,
      ...machineSpecChanges(inTemplate),
      ...templateMetadataChanges,
      ...replicasChanges,
      ...each('clusterName', ['other', '', null], (name) => ({ spec: { clusterName: name } })),
      ['both clusterNames', { spec: { clusterName: 'other', template: { spec: { clusterName: 'other' } } } }],
      severalErrors,
      ...each('failureDomains', [[], ['a', 'b'], [''], ['a', 'a']], (failureDomains) => ({ spec: { failureDomains } })),
      ...each('providerIDList', [[], ['a'], ['']], (providerIDList) => ({ spec: { providerIDList } })),
    ],
  }),
}
