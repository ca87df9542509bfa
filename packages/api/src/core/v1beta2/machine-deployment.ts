/** The kind MachineDeployment, which rolls out a template of Machines. Upstream: api/core/v1beta2/machinedeployment_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { olderVersions } from '../../conversion/older-versions.ts'
import { defaultMachineDeployment, machineDeploymentErrors } from './admission/machine-deployment.ts'
import { ageColumn, availableColumn, clusterColumn, pausedColumn, phaseColumn, versionColumn } from './shared/columns.ts'
import { clusterName, observedGeneration, phase } from './shared/common-fields.ts'
import { coreLabels } from './shared/core-labels.ts'
import { maxInFlight } from './shared/health-check.ts'
import { labelSelector } from './shared/label-selector.ts'
import { legacyStatus } from './shared/legacy-status.ts'
import { nonEmpty } from './shared/limits.ts'
import { legacyMachineCounts, machineCounts, machineSelectorText } from './shared/machine-counts.ts'
import { machineSetDeletion } from './shared/machine-deletion.ts'
import { type MachineTemplateSpec, machineTemplate } from './shared/machine-template.ts'
import { machineNaming } from './shared/naming.ts'
import { machineDeploymentRollout } from './shared/rollout-strategy.ts'
import { replicasByVersion } from './shared/versions.ts'

const machineDeploymentSpec = s.object({
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
  rollout: machineDeploymentRollout,
  remediation: s.object({ maxInFlight }, nonEmpty).optional().doc('How unhealthy Machines are replaced.'),
  deletion: machineSetDeletion.optional(),
  paused: s.boolean().optional().doc('While true, changes of the template are not rolled out; scaling continues.'),
})
export interface MachineDeploymentSpec extends Infer<typeof machineDeploymentSpec> {
  template: MachineTemplateSpec
}

const machineDeploymentStatus = s.object(
  {
    conditions: s.conditions(),
    phase: phase('ScalingUp', 'ScalingDown', 'Running', 'Failed', 'Unknown'),
    selector: machineSelectorText,
    ...machineCounts,
    versions: replicasByVersion.optional(),
    observedGeneration,
    deprecated: legacyStatus({
      ...legacyMachineCounts,
      updatedReplicas: s.int32().optional().doc('Number of Machines of the newest template.'),
      unavailableReplicas: s.int32().optional().doc('Number of Machines that are unavailable or not yet created.'),
    }),
  },
  nonEmpty,
)
export interface MachineDeploymentStatus extends Infer<typeof machineDeploymentStatus> {}

export const MachineDeploymentConditions = conditionTypes({
  Available: ['Available', 'NotAvailable', 'WaitingForReplicasSet', 'WaitingForAvailableReplicasSet', 'InternalError'],
  MachinesReady: ['Ready', 'NoReplicas', 'NotReady', 'ReadyUnknown', 'InternalError'],
  MachinesUpToDate: ['UpToDate', 'NoReplicas', 'NotUpToDate', 'UpToDateUnknown', 'InternalError'],
  RollingOut: ['RollingOut', 'NotRollingOut', 'InternalError'],
  ScalingUp: ['ScalingUp', 'NotScalingUp', 'WaitingForReplicasSet', 'InternalError'],
  ScalingDown: ['ScalingDown', 'NotScalingDown', 'WaitingForReplicasSet', 'InternalError'],
  Remediating: ['Remediating', 'NotRemediating', 'InternalError'],
  Deleting: ['Deleting', 'NotDeleting', 'InternalError'],
  Paused: ['Paused', 'NotPaused'],
})

export const MachineDeployment = defineKind({
  group: 'cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'MachineDeployment',
  plural: 'machinedeployments',
  shortNames: ['md'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'Keeps the specified number of Machines through MachineSets, and replaces them when their template changes.',
  spec: machineDeploymentSpec,
  status: machineDeploymentStatus,
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.status.selector' },
  columns: [
    clusterColumn,
    availableColumn,
    column('Desired', '.spec.replicas', { type: 'integer', description: 'Desired number of Machines' }),
    column('Current', '.status.replicas', { type: 'integer', description: 'Number of Machines' }),
    column('Ready', '.status.readyReplicas', { type: 'integer', description: 'Machines that are Ready' }),
    column('Available', '.status.availableReplicas', { type: 'integer', description: 'Machines that are Available' }),
    column('Up-to-date', '.status.upToDateReplicas', {
      type: 'integer',
      description: 'Machines that are up to date with their template',
    }),
    pausedColumn,
    phaseColumn,
    ageColumn,
    versionColumn('.spec.template.spec.version'),
  ],
  labels: coreLabels,
  versions: olderVersions('cluster.x-k8s.io', 'MachineDeployment'),
  default: defaultMachineDeployment,
  validate: machineDeploymentErrors,
})
export interface MachineDeployment extends ObjectOf<typeof MachineDeployment> {
  spec: MachineDeploymentSpec
  status?: MachineDeploymentStatus
}
