/** MachineSet: keeps a number of equal Machines. Upstream: api/core/v1beta2/machineset_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { contractLabels } from './shared/crd-labels.ts'
import { labelSelector } from './shared/label-selector.ts'
import { legacyConditions } from './shared/legacy-status.ts'
import { machineSetDeletion } from './shared/machine-deletion.ts'
import { machineTemplate } from './shared/machine-template.ts'
import { machineNaming } from './shared/naming.ts'
import { replicasByVersion } from './shared/versions.ts'

const machineSetSpec = s.object({
  clusterName: s.string({ minLength: 1, maxLength: 63 }),
  deletion: machineSetDeletion.optional(),
  machineNaming: machineNaming.optional(),
  replicas: s.int32().optional(),
  selector: labelSelector,
  template: machineTemplate,
})
export type MachineSetSpec = Infer<typeof machineSetSpec>

const machineSetStatus = s.object(
  {
    availableReplicas: s.int32().optional(),
    conditions: s.conditions(),
    deprecated: s
      .object({
        v1beta1: s
          .object({
            availableReplicas: s.int32().optional(),
            conditions: legacyConditions.optional(),
            failureMessage: s.string({ minLength: 1, maxLength: 10240 }).optional(),
            failureReason: s.string().optional(),
            fullyLabeledReplicas: s.int32().optional(),
            readyReplicas: s.int32().optional(),
          })
          .optional(),
      })
      .optional(),
    observedGeneration: s.int64({ minimum: 1 }).optional(),
    readyReplicas: s.int32().optional(),
    replicas: s.int32().optional(),
    selector: s.string({ minLength: 1, maxLength: 4096 }).optional(),
    upToDateReplicas: s.int32().optional(),
    versions: replicasByVersion.optional(),
  },
  { minProperties: 1 },
)
export type MachineSetStatus = Infer<typeof machineSetStatus>

export const MachineSetConditions = conditionTypes({
  MachinesReady: ['Ready', 'NoReplicas', 'NotReady', 'ReadyUnknown', 'InternalError'],
  MachinesUpToDate: ['UpToDate', 'NoReplicas', 'NotUpToDate', 'UpToDateUnknown', 'InternalError'],
  ScalingUp: ['ScalingUp', 'NotScalingUp', 'WaitingForReplicasSet', 'InternalError'],
  ScalingDown: ['ScalingDown', 'NotScalingDown', 'WaitingForReplicasSet', 'InternalError'],
  Remediating: ['Remediating', 'NotRemediating', 'InternalError'],
  Deleting: ['Deleting', 'NotDeleting', 'InternalError'],
  Paused: ['Paused', 'NotPaused'],
})

export const MachineSet = defineKind({
  group: 'cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'MachineSet',
  plural: 'machinesets',
  shortNames: ['ms'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'Keeps as many Machines of one template as it is told to.',
  spec: machineSetSpec,
  status: machineSetStatus,
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.status.selector' },
  columns: [
    column('Cluster', '.spec.clusterName'),
    column('Desired', '.spec.replicas', { type: 'integer' }),
    column('Current', '.status.replicas', { type: 'integer' }),
    column('Ready', '.status.readyReplicas', { type: 'integer' }),
    column('Available', '.status.availableReplicas', { type: 'integer' }),
    column('Up-to-date', '.status.upToDateReplicas', { type: 'integer' }),
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10 }),
    column('Age', '.metadata.creationTimestamp', { type: 'date' }),
    column('Version', '.spec.template.spec.version'),
  ],
  labels: contractLabels,
})
export type MachineSet = ObjectOf<typeof MachineSet>
