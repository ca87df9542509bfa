/**
 * The kind MachinePool, a group of machines that the infrastructure provider manages as one object.
 * Upstream: api/core/v1beta2/machinepool_types.go, v1.14.
 */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { olderVersions } from '../../conversion/older-versions.ts'
import { defaultMachinePool, machinePoolErrors } from './admission/machine-pool.ts'
import { ageColumn, clusterColumn, pausedColumn, phaseColumn, versionColumn } from './shared/columns.ts'
import { clusterName, observedGeneration, phase } from './shared/common-fields.ts'
import { coreLabels } from './shared/core-labels.ts'
import { legacyFailure, legacyStatus } from './shared/legacy-status.ts'
import { nonEmpty, shortText } from './shared/limits.ts'
import { type MachineTemplateSpec, machineTemplate } from './shared/machine-template.ts'
import { replicasByVersion } from './shared/versions.ts'

const machinePoolSpec = s.object({
  clusterName,
  replicas: s
    .int32()
    .optional()
    .doc(
      'Desired number of machines. Default: 1. With the annotations of the cluster autoscaler for the minimum and maximum size, the default is the previous number, limited to this range; for a new object, the minimum.',
    ),
  template: machineTemplate,
  providerIDList: s
    .list(s.string({ minLength: 1, maxLength: 512 }), { maxItems: 10000 })
    .atomic()
    .optional()
    .doc('Provider IDs of the machines. Core copies them from the infrastructure object, and finds the Nodes by them.'),
  failureDomains: s
    .list(s.string(shortText), { maxItems: 100 })
    .atomic()
    .optional()
    .doc('Failure domains that the machines are spread over.'),
})
export interface MachinePoolSpec extends Infer<typeof machinePoolSpec> {
  template: MachineTemplateSpec
}

const initialization = s
  .object(
    {
      infrastructureProvisioned: s.boolean().optional().doc('Whether the infrastructure reports that it is provisioned.'),
      bootstrapDataSecretCreated: s.boolean().optional().doc('Whether the bootstrap data has been created.'),
    },
    nonEmpty,
  )
  .doc('Milestones of provisioning.')

const nodeReference = s
  .object({
    kind: s.string().optional(),
    namespace: s.string().optional(),
    name: s.string().optional(),
    uid: s.string().optional(),
    apiVersion: s.string().optional(),
    resourceVersion: s.string().optional(),
    fieldPath: s.string().optional(),
  })
  .atomic()
export interface NodeReference extends Infer<typeof nodeReference> {}

const machinePoolStatus = s.object(
  {
    conditions: s.conditions(),
    initialization: initialization.optional(),
    nodeRefs: s
      .list(nodeReference, { maxItems: 10000 })
      .atomic()
      .optional()
      .doc('Nodes of the machines, in the order of spec.providerIDList.'),
    replicas: s.int32().optional().doc('Number of machines that the infrastructure reports.'),
    readyReplicas: s
      .int32()
      .optional()
      .doc(
        'Number of Ready Machines of the pool; equals replicas if the infrastructure provider does not support MachinePool Machines.',
      ),
    availableReplicas: s
      .int32()
      .optional()
      .doc(
        'Number of Available Machines of the pool; equals replicas if the infrastructure provider does not support MachinePool Machines.',
      ),
    upToDateReplicas: s
      .int32()
      .optional()
      .doc(
        'Number of up-to-date Machines of the pool; equals spec.replicas if the infrastructure provider does not support MachinePool Machines.',
      ),
    versions: replicasByVersion.optional(),
    phase: phase(
      'Pending',
      'Provisioning',
      'Provisioned',
      'Running',
      'ScalingUp',
      'ScalingDown',
      'Scaling',
      'Deleting',
      'Failed',
      'Unknown',
    ),
    observedGeneration,
    deprecated: legacyStatus({
      ...legacyFailure,
      readyReplicas: s.int32().optional().doc('Number of Ready Nodes.'),
      availableReplicas: s.int32().optional().doc('Number of Nodes that have been Ready for minReadySeconds.'),
      unavailableReplicas: s.int32().optional().doc('Number of machines without a Node that has been Ready for minReadySeconds.'),
    }),
  },
  nonEmpty,
)
export interface MachinePoolStatus extends Infer<typeof machinePoolStatus> {}

/** Conditions of a MachinePool. Upstream v1.14 sets no other condition; the v1beta1 status has further conditions. */
export const MachinePoolConditions = conditionTypes({
  Paused: ['Paused', 'NotPaused'],
})

export const MachinePool = defineKind({
  group: 'cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'MachinePool',
  plural: 'machinepools',
  shortNames: ['mp'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'A group of equal machines that the infrastructure provider manages as one.',
  spec: machinePoolSpec,
  status: machinePoolStatus,
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
  columns: [
    clusterColumn,
    column('Desired', '.spec.replicas', { type: 'integer', description: 'Desired number of machines' }),
    column('Current', '.status.replicas', { type: 'integer', description: 'Number of machines' }),
    column('Ready', '.status.readyReplicas', { type: 'integer', description: 'Machines that are Ready' }),
    column('Available', '.status.availableReplicas', { type: 'integer', description: 'Machines that are Available' }),
    column('Up-to-date', '.status.upToDateReplicas', { type: 'integer', description: 'Machines that are up to date' }),
    pausedColumn,
    phaseColumn,
    ageColumn,
    versionColumn('.spec.template.spec.version'),
  ],
  labels: coreLabels,
  versions: olderVersions('cluster.x-k8s.io', 'MachinePool'),
  default: defaultMachinePool,
  validate: machinePoolErrors,
})
export interface MachinePool extends ObjectOf<typeof MachinePool> {
  spec: MachinePoolSpec
  status?: MachinePoolStatus
}
