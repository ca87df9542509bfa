/** MachineDeployment: rolls a template out over Machines. Upstream: api/core/v1beta2/machinedeployment_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { defaultMachineDeployment, machineDeploymentErrors } from './admission/machine-deployment.ts'
import { contractLabels } from './shared/crd-labels.ts'
import { labelSelector } from './shared/label-selector.ts'
import { legacyConditions } from './shared/legacy-status.ts'
import { machineSetDeletion } from './shared/machine-deletion.ts'
import { machineTemplate } from './shared/machine-template.ts'
import { machineNaming } from './shared/naming.ts'
import { rolloutStrategy } from './shared/rollout-strategy.ts'
import { replicasByVersion } from './shared/versions.ts'

const machineDeploymentSpec = s.object({
  clusterName: s.string({ minLength: 1, maxLength: 63 }).doc('Name of the Cluster it belongs to. It cannot change.'),
  deletion: machineSetDeletion.optional(),
  machineNaming: machineNaming.optional(),
  paused: s.boolean().optional().doc('While true, changes of the template are not rolled out; scaling goes on.'),
  remediation: s
    .object(
      {
        maxInFlight: s
          .intOrString()
          .optional()
          .doc('How many Machines may be replaced at once for being unhealthy: a number, or a percentage of the replicas.'),
      },
      { minProperties: 1 },
    )
    .optional()
    .doc('How and when unhealthy Machines are replaced.'),
  replicas: s
    .int32()
    .optional()
    .doc('How many Machines there should be; one when absent, or what the annotations of the cluster autoscaler say.'),
  rollout: s
    .object(
      {
        after: s.timestamp().optional().doc('Machines made before this time are replaced once it has come.'),
        strategy: rolloutStrategy.optional(),
      },
      { minProperties: 1 },
    )
    .optional()
    .doc('When and how changes reach Machines.'),
  selector: labelSelector.doc('Which Machines belong to it. Must select those of its template.'),
  template: machineTemplate,
})
export type MachineDeploymentSpec = Infer<typeof machineDeploymentSpec>

const machineDeploymentStatus = s.object(
  {
    availableReplicas: s.int32().optional().doc('How many Machines are Available.'),
    conditions: s.conditions(),
    deprecated: s
      .object({
        v1beta1: s
          .object({
            availableReplicas: s.int32().optional().doc('How many Machines are Available.'),
            conditions: legacyConditions.optional(),
            readyReplicas: s.int32().optional().doc('How many Machines are Ready.'),
            unavailableReplicas: s.int32().optional().doc('Machines that are not available, or not there yet.'),
            updatedReplicas: s.int32().optional().doc('Machines of the newest template.'),
          })
          .optional(),
      })
      .optional()
      .doc('Status of v1beta1, kept while v1beta1 is served.'),
    observedGeneration: s.int64({ minimum: 1 }).optional().doc('The metadata.generation that was reconciled last.'),
    phase: s
      .enum('ScalingUp', 'ScalingDown', 'Running', 'Failed', 'Unknown')
      .optional()
      .doc('Where it is in its life, for people to read. Programs read conditions.'),
    readyReplicas: s.int32().optional().doc('How many Machines are Ready.'),
    replicas: s.int32().optional().doc('How many Machines there are.'),
    selector: s
      .string({ minLength: 1, maxLength: 4096 })
      .optional()
      .doc('Selects the Machines, as text: of the scale subresource.'),
    upToDateReplicas: s.int32().optional().doc('How many Machines are as their template says.'),
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
    column('Cluster', '.spec.clusterName', { description: 'Name of the Cluster it belongs to' }),
    column('Available', '.status.conditions[?(@.type=="Available")].status', { description: 'Passes all availability checks' }),
    column('Desired', '.spec.replicas', { type: 'integer', description: 'Machines that there should be' }),
    column('Current', '.status.replicas', { type: 'integer', description: 'Machines that there are' }),
    column('Ready', '.status.readyReplicas', { type: 'integer', description: 'Machines that are Ready' }),
    column('Available', '.status.availableReplicas', { type: 'integer', description: 'Passes all availability checks' }),
    column('Up-to-date', '.status.upToDateReplicas', {
      type: 'integer',
      description: 'Machines that are as their template says',
    }),
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10, description: 'Reconciliation paused' }),
    column('Phase', '.status.phase', { description: 'Where it is in its life' }),
    column('Age', '.metadata.creationTimestamp', { type: 'date', description: 'Time since creation' }),
    column('Version', '.spec.template.spec.version', { description: 'Kubernetes version' }),
  ],
  labels: contractLabels,
  default: defaultMachineDeployment,
  validate: machineDeploymentErrors,
})
export type MachineDeployment = ObjectOf<typeof MachineDeployment>
