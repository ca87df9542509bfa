/** The kind Cluster, one workload cluster. Upstream: api/core/v1beta2/cluster_types.go, v1.14. */
import type { Column, Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { olderVersions } from '../../conversion/older-versions.ts'
import { clusterErrors, defaultCluster } from './admission/cluster.ts'
import { ageColumn, availableColumn, pausedColumn, phaseColumn, versionColumn } from './shared/columns.ts'
import { failureDomain, minReadySeconds, observedGeneration, phase } from './shared/common-fields.ts'
import { conditionGates } from './shared/condition-gates.ts'
import { coreLabels } from './shared/core-labels.ts'
import { controlPlaneHealthCheck, machineDeploymentHealthCheck } from './shared/health-check.ts'
import { legacyFailure, legacyStatus } from './shared/legacy-status.ts'
import { dnsLabel, dnsSubdomain, nonEmpty, objectName, shortText } from './shared/limits.ts'
import { machineCounts } from './shared/machine-counts.ts'
import { machineDeletion, machineDeploymentTopologyDeletion } from './shared/machine-deletion.ts'
import { machineTaints } from './shared/machine-taints.ts'
import { objectMeta } from './shared/object-meta.ts'
import { contractReference } from './shared/references.ts'
import { controlPlaneRollout, machineDeploymentRollout } from './shared/rollout-strategy.ts'
import { variableOverrides, variableValues } from './shared/variables.ts'
import { replicasOfVersion, upgradePlan } from './shared/versions.ts'

// Network

const networkRanges = s.object({
  cidrBlocks: s
    .list(s.string({ minLength: 1, maxLength: 43 }), { minItems: 1, maxItems: 100 })
    .atomic()
    .doc('Address ranges in CIDR notation, such as 10.128.0.0/12: usually one for each address family.'),
})
export interface NetworkRanges extends Infer<typeof networkRanges> {}

const clusterNetwork = s
  .object(
    {
      apiServerPort: s
        .int32({ minimum: 1, maximum: 65535 })
        .optional()
        .doc('Port that API servers should listen on. The default depends on the provider.'),
      services: networkRanges.optional().doc('Address ranges of Services.'),
      pods: networkRanges.optional().doc('Address ranges of Pods.'),
      serviceDomain: s.string({ minLength: 1, maxLength: 253 }).optional().doc('Domain name of Services, such as cluster.local.'),
    },
    nonEmpty,
  )
  .doc('Network settings of the workload cluster.')

const apiEndpoint = s
  .object(
    {
      host: s.string({ minLength: 1, maxLength: 512 }).optional().doc('Host name or IP address.'),
      port: s.int32({ minimum: 1, maximum: 65535 }).optional(),
    },
    nonEmpty,
  )
  .doc('Host and port of the API server of the workload cluster.')
export interface APIEndpoint extends Infer<typeof apiEndpoint> {}

// Topology

const controlPlaneTopology = s
  .object(
    {
      metadata: objectMeta.optional(),
      replicas: s.int32().optional().doc('Desired number of control plane Machines.'),
      rollout: controlPlaneRollout,
      healthCheck: controlPlaneHealthCheck,
      deletion: machineDeletion.optional(),
      taints: machineTaints.optional(),
      readinessGates: conditionGates.optional(),
      variables: variableOverrides.optional(),
    },
    nonEmpty,
  )
  .doc('The control plane of a managed topology.')
export interface ControlPlaneTopology extends Infer<typeof controlPlaneTopology> {}

const workersOfClass = {
  class: s.string(shortText).doc('Name of the class in the ClusterClass.'),
  name: s
    .string({ minLength: 1, maxLength: 63, pattern: dnsSubdomain })
    .doc('Name within the topology; the name of the created object is generated.'),
  metadata: objectMeta.optional(),
  replicas: s
    .int32()
    .optional()
    .doc(
      'Desired number of Machines. When absent, the created object starts with its default, and users or an autoscaler can scale it.',
    ),
  minReadySeconds,
  taints: machineTaints.optional(),
  variables: variableOverrides.optional(),
}

const machineDeploymentTopology = s
  .object({
    ...workersOfClass,
    failureDomain,
    healthCheck: machineDeploymentHealthCheck,
    deletion: machineDeploymentTopologyDeletion.optional(),
    readinessGates: conditionGates.optional(),
    rollout: machineDeploymentRollout,
  })
  .doc('One MachineDeployment of a managed topology.')
export interface MachineDeploymentTopology extends Infer<typeof machineDeploymentTopology> {}

const machinePoolTopology = s
  .object({
    ...workersOfClass,
    failureDomains: s
      .list(s.string(shortText), { minItems: 1, maxItems: 100 })
      .atomic()
      .optional()
      .doc('Failure domains in which machines are placed. Each is one of those in the status of the Cluster.'),
    deletion: machineDeletion.optional(),
  })
  .doc('One MachinePool of a managed topology.')
export interface MachinePoolTopology extends Infer<typeof machinePoolTopology> {}

const classRef = s
  .object({
    name: s.string(objectName).doc('Name of the ClusterClass.'),
    namespace: s
      .string({ minLength: 1, maxLength: 63, pattern: dnsLabel })
      .optional()
      .doc('Namespace of the ClusterClass; that of the Cluster when absent.'),
  })
  .doc('The ClusterClass.')

const topology = s
  .object({
    classRef,
    version: s
      .string(shortText)
      .doc('Kubernetes version of the cluster. Changing it upgrades the control plane, then the workers.'),
    controlPlane: controlPlaneTopology.optional(),
    workers: s
      .object(
        {
          machineDeployments: s
            .list(machineDeploymentTopology, { minItems: 1, maxItems: 2000 })
            .listMap('name')
            .optional()
            .doc('Groups of worker Machines, each managed by a MachineDeployment.'),
          machinePools: s
            .list(machinePoolTopology, { minItems: 1, maxItems: 2000 })
            .listMap('name')
            .optional()
            .doc('Groups of worker Machines, each managed by a MachinePool.'),
        },
        nonEmpty,
      )
      .optional()
      .doc('The worker Machines, in groups.'),
    variables: variableValues.optional(),
  })
  .doc('Managed topology: the topology controller creates and updates the objects of the Cluster from a ClusterClass.')
export interface ClusterTopology extends Infer<typeof topology> {}

const clusterSpec = s.object(
  {
    paused: s.boolean().optional().doc('While true, the Cluster and its objects are not reconciled.'),
    clusterNetwork: clusterNetwork.optional(),
    controlPlaneEndpoint: apiEndpoint.optional(),
    controlPlaneRef: contractReference.optional().doc('The provider object of the control plane.'),
    infrastructureRef: contractReference.optional().doc('The provider object of the infrastructure.'),
    topology: topology.optional(),
    availabilityGates: conditionGates.optional(),
  },
  nonEmpty,
)
export interface ClusterSpec extends Infer<typeof clusterSpec> {
  topology?: ClusterTopology
}

// Status

const initialization = s
  .object(
    {
      infrastructureProvisioned: s.boolean().optional().doc('True once the infrastructure was provisioned.'),
      controlPlaneInitialized: s.boolean().optional().doc('True once the API server accepted requests for the first time.'),
    },
    nonEmpty,
  )
  .doc('Milestones of provisioning. They never become false again.')
export interface ClusterInitialization extends Infer<typeof initialization> {}

const clusterReplicas = s.object({
  desiredReplicas: s.int32().optional().doc('Desired number of Machines.'),
  ...machineCounts,
  versions: replicasOfVersion.optional(),
  upgradePlan: upgradePlan.optional(),
})
export interface ClusterReplicas extends Infer<typeof clusterReplicas> {}

const failureDomains = s
  .list(
    s.object({
      name: s.string(shortText).doc('Name of the failure domain.'),
      controlPlane: s.boolean().optional().doc('Whether control plane Machines can be placed there.'),
      attributes: s.map(s.string()).optional().doc('Attributes of the failure domain, set by the provider.'),
    }),
    { minItems: 1, maxItems: 100 },
  )
  .listMap('name')
  .doc('Failure domains of the Cluster, as the infrastructure provider reports them.')
export type FailureDomain = Infer<typeof failureDomains>[number]

const clusterStatus = s.object(
  {
    conditions: s.conditions(),
    phase: phase('Pending', 'Provisioning', 'Provisioned', 'Deleting', 'Failed', 'Unknown'),
    initialization: initialization.optional(),
    controlPlane: clusterReplicas.optional().doc('Current and desired numbers of control plane Machines.'),
    workers: clusterReplicas.optional().doc('Current and desired numbers of worker Machines.'),
    failureDomains: failureDomains.optional(),
    observedGeneration,
    deprecated: legacyStatus(legacyFailure),
  },
  nonEmpty,
)
export interface ClusterStatus extends Infer<typeof clusterStatus> {}

/** Conditions of a Cluster. A condition that is copied from a provider object may also have other reasons, which the provider defines. */
export const ClusterConditions = conditionTypes({
  Available: ['Available', 'NotAvailable', 'AvailableUnknown', 'InternalError'],
  TopologyReconciled: [
    'ReconcileSucceeded',
    'ReconcileFailed',
    'Paused',
    'Deleting',
    'ClusterClassNotReconciled',
    'ClusterCreating',
    'ClusterUpgrading',
    'MachineDeploymentsUpgradeDeferred',
    'MachinePoolsUpgradeDeferred',
  ],
  InfrastructureReady: ['Ready', 'NotReady', 'ObjectDoesNotExist', 'ObjectDeleted', 'InvalidConditionReported', 'InternalError'],
  ControlPlaneInitialized: ['Initialized', 'NotInitialized', 'ObjectDoesNotExist', 'InternalError'],
  ControlPlaneAvailable: [
    'Available',
    'NotAvailable',
    'ObjectDoesNotExist',
    'ObjectDeleted',
    'InvalidConditionReported',
    'InternalError',
  ],
  WorkersAvailable: ['Available', 'NoWorkers', 'NotAvailable', 'AvailableUnknown', 'InternalError'],
  ControlPlaneMachinesReady: ['Ready', 'NoReplicas', 'NotReady', 'ReadyUnknown', 'InternalError'],
  WorkerMachinesReady: ['Ready', 'NoReplicas', 'NotReady', 'ReadyUnknown', 'InternalError'],
  ControlPlaneMachinesUpToDate: ['UpToDate', 'NoReplicas', 'NotUpToDate', 'UpToDateUnknown', 'InternalError'],
  WorkerMachinesUpToDate: ['UpToDate', 'NoReplicas', 'NotUpToDate', 'UpToDateUnknown', 'InternalError'],
  RemoteConnectionProbe: ['ProbeSucceeded', 'ProbeFailed'],
  RollingOut: ['RollingOut', 'NotRollingOut', 'RollingOutUnknown', 'InternalError'],
  ScalingUp: ['ScalingUp', 'NotScalingUp', 'ScalingUpUnknown', 'InternalError'],
  ScalingDown: ['ScalingDown', 'NotScalingDown', 'ScalingDownUnknown', 'InternalError'],
  Remediating: ['Remediating', 'NotRemediating', 'InternalError'],
  Deleting: [
    'NotDeleting',
    'WaitingForBeforeDeleteHook',
    'WaitingForWorkersDeletion',
    'WaitingForControlPlaneDeletion',
    'WaitingForInfrastructureDeletion',
    'DeletionCompleted',
    'InternalError',
  ],
  Paused: ['Paused', 'NotPaused'],
})

function replicaColumns(prefix: string, path: string, machines: string): Column[] {
  const count = (name: string, member: string, clause: string, options: { priority?: number } = {}) =>
    column(`${prefix} ${name}`, `${path}.${member}`, { type: 'integer', ...options, description: `${machines} that ${clause}` })
  return [
    count('Desired', 'desiredReplicas', 'are desired'),
    count('Current', 'replicas', 'exist', { priority: 10 }),
    count('Ready', 'readyReplicas', 'are Ready', { priority: 10 }),
    count('Available', 'availableReplicas', 'are Available'),
    count('Up-to-date', 'upToDateReplicas', 'are up to date with the spec'),
  ]
}

export const Cluster = defineKind({
  group: 'cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'Cluster',
  plural: 'clusters',
  shortNames: ['cl'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'A Kubernetes cluster that is managed as an object: its infrastructure, its control plane and its machines.',
  spec: clusterSpec,
  status: clusterStatus,
  columns: [
    column('ClusterClass', '.spec.topology.classRef.name', { description: 'The ClusterClass; empty without a managed topology' }),
    availableColumn,
    ...replicaColumns('CP', '.status.controlPlane', 'Control plane Machines'),
    ...replicaColumns('W', '.status.workers', 'Worker Machines'),
    pausedColumn,
    phaseColumn,
    ageColumn,
    versionColumn('.spec.topology.version'),
  ],
  labels: coreLabels,
  versions: olderVersions('cluster.x-k8s.io', 'Cluster'),
  default: defaultCluster,
  validate: clusterErrors,
})
export interface Cluster extends ObjectOf<typeof Cluster> {
  spec: ClusterSpec
  status?: ClusterStatus
}
