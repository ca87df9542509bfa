/** The kind MachineSet, a number of equal Machines. Upstream: api/core/v1beta2/machineset_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { olderVersions } from '../../conversion/older-versions.ts'
import { defaultMachineSet, machineSetErrors } from './admission/machine-set.ts'
import { ageColumn, clusterColumn, pausedColumn, versionColumn } from './shared/columns.ts'
import { clusterName, observedGeneration } from './shared/common-fields.ts'
import { coreLabels } from './shared/core-labels.ts'
import { labelSelector } from './shared/label-selector.ts'
import { legacyFailure, legacyStatus } from './shared/legacy-status.ts'
import { nonEmpty } from './shared/limits.ts'
import { legacyMachineCounts, machineCounts, machineSelectorText } from './shared/machine-counts.ts'
import { machineSetDeletion } from './shared/machine-deletion.ts'
import { type MachineTemplateSpec, machineTemplate } from './shared/machine-template.ts'
import { machineNaming } from './shared/naming.ts'
import { replicasByVersion } from './shared/versions.ts'

const machineSetSpec = s.object({
  clusterName,
  replicas: s
    .int32()
    .optional()
    .doc(
      'Desired number of Machines. Default: 1. With the annotations of the cluster autoscaler for the minimum and maximum size, the default is the previous number, limited to this range; for a new object, the minimum.',
    ),
  selector: labelSelector.doc('Selects the Machines of this object. It must match the labels of the template.'),
  template: machineTemplate,
  machineNaming: machineNaming.optional(),
  deletion: machineSetDeletion.optional(),
})
export interface MachineSetSpec extends Infer<typeof machineSetSpec> {
  template: MachineTemplateSpec
}

const machineSetStatus = s.object(
  {
    conditions: s.conditions(),
    selector: machineSelectorText,
    ...machineCounts,
    versions: replicasByVersion.optional(),
    observedGeneration,
    deprecated: legacyStatus({
      ...legacyFailure,
      ...legacyMachineCounts,
      fullyLabeledReplicas: s.int32().optional().doc('Number of Machines that have the labels of the template.'),
    }),
  },
  nonEmpty,
)
export interface MachineSetStatus extends Infer<typeof machineSetStatus> {}

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
  doc: 'Keeps the specified number of Machines of one template.',
  spec: machineSetSpec,
  status: machineSetStatus,
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.status.selector' },
  columns: [
    clusterColumn,
    column('Desired', '.spec.replicas', { type: 'integer', description: 'Desired number of Machines' }),
    column('Current', '.status.replicas', { type: 'integer', description: 'Number of Machines' }),
    column('Ready', '.status.readyReplicas', { type: 'integer', description: 'Machines that are Ready' }),
    column('Available', '.status.availableReplicas', { type: 'integer', description: 'Machines that are Available' }),
    column('Up-to-date', '.status.upToDateReplicas', {
      type: 'integer',
      description: 'Machines whose condition UpToDate is True',
    }),
    pausedColumn,
    ageColumn,
    versionColumn('.spec.template.spec.version'),
  ],
  labels: coreLabels,
  versions: olderVersions('cluster.x-k8s.io', 'MachineSet'),
  default: defaultMachineSet,
  validate: machineSetErrors,
})
export interface MachineSet extends ObjectOf<typeof MachineSet> {
  spec: MachineSetSpec
  status?: MachineSetStatus
}
