/** MachineSet: keeps a number of equal Machines. Upstream: api/core/v1beta2/machineset_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { defaultMachineSet, machineSetErrors } from './admission/machine-set.ts'
import { contractLabels } from './shared/crd-labels.ts'
import { labelSelector } from './shared/label-selector.ts'
import { legacyConditions } from './shared/legacy-status.ts'
import { machineSetDeletion } from './shared/machine-deletion.ts'
import { machineTemplate } from './shared/machine-template.ts'
import { machineNaming } from './shared/naming.ts'
import { replicasByVersion } from './shared/versions.ts'

const machineSetSpec = s.object({
  clusterName: s.string({ minLength: 1, maxLength: 63 }).doc('Name of the Cluster it belongs to. It cannot change.'),
  deletion: machineSetDeletion.optional(),
  machineNaming: machineNaming.optional(),
  replicas: s
    .int32()
    .optional()
    .doc('How many Machines there should be; one when absent, or what the annotations of the cluster autoscaler say.'),
  selector: labelSelector.doc('Which Machines belong to it. Must select those of its template.'),
  template: machineTemplate,
})
export type MachineSetSpec = Infer<typeof machineSetSpec>

const machineSetStatus = s.object(
  {
    availableReplicas: s.int32().optional().doc('How many Machines are Available.'),
    conditions: s.conditions(),
    deprecated: s
      .object({
        v1beta1: s
          .object({
            availableReplicas: s.int32().optional().doc('How many Machines are Available.'),
            conditions: legacyConditions.optional(),
            failureMessage: s
              .string({ minLength: 1, maxLength: 10240 })
              .optional()
              .doc('Why it failed for good, in words for people.'),
            failureReason: s.string().optional().doc('Why it failed for good, in one word for programs.'),
            fullyLabeledReplicas: s.int32().optional().doc('Machines that have the labels of the template.'),
            readyReplicas: s.int32().optional().doc('How many Machines are Ready.'),
          })
          .optional(),
      })
      .optional()
      .doc('Status of v1beta1, kept while v1beta1 is served.'),
    observedGeneration: s.int64({ minimum: 1 }).optional().doc('The metadata.generation that was reconciled last.'),
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
    column('Cluster', '.spec.clusterName', { description: 'Name of the Cluster it belongs to' }),
    column('Desired', '.spec.replicas', { type: 'integer', description: 'Machines that there should be' }),
    column('Current', '.status.replicas', { type: 'integer', description: 'Machines that there are' }),
    column('Ready', '.status.readyReplicas', { type: 'integer', description: 'Machines that are Ready' }),
    column('Available', '.status.availableReplicas', { type: 'integer', description: 'Machines that are Available' }),
    column('Up-to-date', '.status.upToDateReplicas', {
      type: 'integer',
      description: 'Machines that are as their template says',
    }),
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10, description: 'Reconciliation paused' }),
    column('Age', '.metadata.creationTimestamp', { type: 'date', description: 'Time since creation' }),
    column('Version', '.spec.template.spec.version', { description: 'Kubernetes version' }),
  ],
  labels: contractLabels,
  default: defaultMachineSet,
  validate: machineSetErrors,
})
export type MachineSet = ObjectOf<typeof MachineSet>
