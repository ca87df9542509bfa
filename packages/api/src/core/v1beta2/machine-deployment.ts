/** MachineDeployment: rolls a template out over Machines. Upstream: api/core/v1beta2/machinedeployment_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { contractLabels } from './shared/crd-labels.ts'
import { labelSelector } from './shared/label-selector.ts'
import { legacyConditions } from './shared/legacy-status.ts'
import { machineSetDeletion } from './shared/machine-deletion.ts'
import { machineTemplate } from './shared/machine-template.ts'
import { machineNaming } from './shared/naming.ts'
import { rolloutStrategy } from './shared/rollout-strategy.ts'
import { replicasByVersion } from './shared/versions.ts'

const machineDeploymentSpec = s.object({
  clusterName: s.string({ minLength: 1, maxLength: 63 }),
  deletion: machineSetDeletion.optional(),
  machineNaming: machineNaming.optional(),
  paused: s.boolean().optional(),
  remediation: s
    .object(
      {
        maxInFlight: s.intOrString().optional(),
      },
      { minProperties: 1 },
    )
    .optional(),
  replicas: s.int32().optional(),
  rollout: s
    .object(
      {
        after: s.timestamp().optional(),
        strategy: rolloutStrategy.optional(),
      },
      { minProperties: 1 },
    )
    .optional(),
  selector: labelSelector,
  template: machineTemplate,
})
export type MachineDeploymentSpec = Infer<typeof machineDeploymentSpec>

const machineDeploymentStatus = s.object(
  {
    availableReplicas: s.int32().optional(),
    conditions: s.conditions(),
    deprecated: s
      .object({
        v1beta1: s
          .object({
            availableReplicas: s.int32().optional(),
            conditions: legacyConditions.optional(),
            readyReplicas: s.int32().optional(),
            unavailableReplicas: s.int32().optional(),
            updatedReplicas: s.int32().optional(),
          })
          .optional(),
      })
      .optional(),
    observedGeneration: s.int64({ minimum: 1 }).optional(),
    phase: s.enum('ScalingUp', 'ScalingDown', 'Running', 'Failed', 'Unknown').optional(),
    readyReplicas: s.int32().optional(),
    replicas: s.int32().optional(),
    selector: s.string({ minLength: 1, maxLength: 4096 }).optional(),
    upToDateReplicas: s.int32().optional(),
    versions: replicasByVersion.optional(),
  },
  { minProperties: 1 },
)
export type MachineDeploymentStatus = Infer<typeof machineDeploymentStatus>

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
  doc: 'Keeps a number of Machines and replaces them when their template changes, through MachineSets.',
  spec: machineDeploymentSpec,
  status: machineDeploymentStatus,
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.status.selector' },
  columns: [
    column('Cluster', '.spec.clusterName'),
    column('Available', '.status.conditions[?(@.type=="Available")].status'),
    column('Desired', '.spec.replicas', { type: 'integer' }),
    column('Current', '.status.replicas', { type: 'integer' }),
    column('Ready', '.status.readyReplicas', { type: 'integer' }),
    column('Available', '.status.availableReplicas', { type: 'integer' }),
    column('Up-to-date', '.status.upToDateReplicas', { type: 'integer' }),
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10 }),
    column('Phase', '.status.phase'),
    column('Age', '.metadata.creationTimestamp', { type: 'date' }),
    column('Version', '.spec.template.spec.version'),
  ],
  labels: contractLabels,
})
export type MachineDeployment = ObjectOf<typeof MachineDeployment>
