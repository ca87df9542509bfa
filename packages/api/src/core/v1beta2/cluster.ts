/** Cluster: one workload cluster. Upstream: api/core/v1beta2/cluster_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { defaultCluster, clusterErrors } from './admission/cluster.ts'
import { conditionGates } from './shared/condition-gates.ts'
import { contractLabels } from './shared/crd-labels.ts'
import { healthChecks, remediationTrigger } from './shared/health-check.ts'
import { legacyConditions } from './shared/legacy-status.ts'
import { machineDeploymentDeletion, nodeDeletion } from './shared/machine-deletion.ts'
import { machineTaints } from './shared/machine-taints.ts'
import { objectMeta } from './shared/object-meta.ts'
import { dnsLabel, dnsSubdomain } from './shared/patterns.ts'
import { contractReference, templateReference } from './shared/references.ts'
import { rolloutStrategy } from './shared/rollout-strategy.ts'
import { variableOverrides, variableValues } from './shared/variables.ts'
import { replicasOfVersion, upgradePlan } from './shared/versions.ts'

const networkRanges = s
  .object({
    cidrBlocks: s
      .list(s.string({ minLength: 1, maxLength: 43 }), { minItems: 1, maxItems: 100 })
      .atomic()
      .doc('Ranges such as 10.128.0.0/12, at most one per address family in practice.'),
  })
  .doc('Ranges of addresses.')
export type NetworkRanges = Infer<typeof networkRanges>

const apiEndpoint = s
  .object(
    {
      host: s.string({ minLength: 1, maxLength: 512 }).optional().doc('Name or address.'),
      port: s.int32({ minimum: 1, maximum: 65535 }).optional(),
    },
    { minProperties: 1 },
  )
  .doc('Where the API server of the workload cluster is reached.')
export type APIEndpoint = Infer<typeof apiEndpoint>

const controlPlaneTopology = s
  .object(
    {
      deletion: nodeDeletion.optional(),
      healthCheck: s
        .object(
          {
            checks: healthChecks.optional(),
            enabled: s
              .boolean()
              .optional()
              .doc(
                'Whether there is a MachineHealthCheck. When absent, there is one if the topology or the class defines checks.',
              ),
            remediation: s
              .object(
                {
                  templateRef: templateReference.optional(),
                  triggerIf: remediationTrigger.optional(),
                },
                { minProperties: 1 },
              )
              .optional()
              .doc('How and when unhealthy Machines are replaced.'),
          },
          { minProperties: 1 },
        )
        .optional()
        .doc('When Machines count as unhealthy, and what happens then.'),
      metadata: objectMeta.optional(),
      readinessGates: conditionGates.optional(),
      replicas: s.int32().optional().doc('How many control plane Machines there should be.'),
      rollout: s
        .object(
          {
            after: s.timestamp().optional().doc('Machines made before this time are replaced once it has come.'),
          },
          { minProperties: 1 },
        )
        .optional()
        .doc('When and how changes reach Machines.'),
      taints: machineTaints.optional(),
      variables: variableOverrides.optional(),
    },
    { minProperties: 1 },
  )
  .doc('The control plane of a managed topology.')
export type ControlPlaneTopology = Infer<typeof controlPlaneTopology>

const machineDeploymentTopology = s
  .object({
    class: s.string({ minLength: 1, maxLength: 256 }).doc('Name of the class in the ClusterClass it is made from.'),
    deletion: machineDeploymentDeletion.optional(),
    failureDomain: s
      .string({ minLength: 1, maxLength: 256 })
      .optional()
      .doc('Where Machines are placed, among the failure domains of the Cluster.'),
    healthCheck: s
      .object(
        {
          checks: healthChecks.optional(),
          enabled: s
            .boolean()
            .optional()
            .doc('Whether there is a MachineHealthCheck. When absent, there is one if the topology or the class defines checks.'),
          remediation: s
            .object(
              {
                maxInFlight: s
                  .intOrString()
                  .optional()
                  .doc(
                    'How many Machines may be replaced at once for being unhealthy: a number, or a percentage of the replicas.',
                  ),
                templateRef: templateReference.optional(),
                triggerIf: remediationTrigger.optional(),
              },
              { minProperties: 1 },
            )
            .optional()
            .doc('How and when unhealthy Machines are replaced.'),
        },
        { minProperties: 1 },
      )
      .optional()
      .doc('When Machines count as unhealthy, and what happens then.'),
    metadata: objectMeta.optional(),
    minReadySeconds: s
      .int32({ minimum: 0 })
      .optional()
      .doc('How long a Machine must be Ready before it counts as Available; 0 when absent.'),
    name: s
      .string({ minLength: 1, maxLength: 63, pattern: dnsSubdomain })
      .doc('Identifies it within the topology; the name of its object is generated.'),
    readinessGates: conditionGates.optional(),
    replicas: s
      .int32()
      .optional()
      .doc('How many Machines there should be. When absent, an autoscaler may decide; otherwise there is one.'),
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
    taints: machineTaints.optional(),
    variables: variableOverrides.optional(),
  })
  .doc('One MachineDeployment of a managed topology.')
export type MachineDeploymentTopology = Infer<typeof machineDeploymentTopology>

const machinePoolTopology = s
  .object({
    class: s.string({ minLength: 1, maxLength: 256 }).doc('Name of the class in the ClusterClass it is made from.'),
    deletion: nodeDeletion.optional(),
    failureDomains: s
      .list(s.string({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 100 })
      .atomic()
      .optional()
      .doc('Where Machines are placed, among the failure domains of the Cluster.'),
    metadata: objectMeta.optional(),
    minReadySeconds: s
      .int32({ minimum: 0 })
      .optional()
      .doc('How long a Machine must be Ready before it counts as Available; 0 when absent.'),
    name: s
      .string({ minLength: 1, maxLength: 63, pattern: dnsSubdomain })
      .doc('Identifies it within the topology; the name of its object is generated.'),
    replicas: s
      .int32()
      .optional()
      .doc('How many Machines there should be. When absent, an autoscaler may decide; otherwise there is one.'),
    taints: machineTaints.optional(),
    variables: variableOverrides.optional(),
  })
  .doc('One MachinePool of a managed topology.')
export type MachinePoolTopology = Infer<typeof machinePoolTopology>

const topology = s
  .object({
    classRef: s
      .object({
        name: s.string({ minLength: 1, maxLength: 253, pattern: dnsSubdomain }),
        namespace: s
          .string({ minLength: 1, maxLength: 63, pattern: dnsLabel })
          .optional()
          .doc('Namespace of the ClusterClass; that of the Cluster when absent.'),
      })
      .doc('The ClusterClass.'),
    controlPlane: controlPlaneTopology.optional(),
    variables: variableValues.optional(),
    version: s
      .string({ minLength: 1, maxLength: 256 })
      .doc('Kubernetes version of the cluster. Changing it upgrades the control plane, then the workers.'),
    workers: s
      .object(
        {
          machineDeployments: s
            .list(machineDeploymentTopology, { minItems: 1, maxItems: 2000 })
            .listMap('name')
            .optional()
            .doc('Groups of Machines that MachineDeployments manage.'),
          machinePools: s
            .list(machinePoolTopology, { minItems: 1, maxItems: 2000 })
            .listMap('name')
            .optional()
            .doc('Groups of Machines that MachinePools manage.'),
        },
        { minProperties: 1 },
      )
      .optional()
      .doc('The worker Machines, in groups.'),
  })
  .doc('A cluster described by a ClusterClass: its objects are made and kept by the topology controller.')
export type ClusterTopology = Infer<typeof topology>

const failureDomains = s
  .list(
    s.object({
      attributes: s.map(s.string()).optional().doc('What the provider wants to say about it.'),
      controlPlane: s.boolean().optional().doc('Whether control plane Machines can be placed there.'),
      name: s.string({ minLength: 1, maxLength: 256 }),
    }),
    { minItems: 1, maxItems: 100 },
  )
  .listMap('name')
  .doc('Where Machines can be placed so that they do not fail together.')
export type FailureDomain = Infer<typeof failureDomains>[number]

const clusterReplicas = s
  .object({
    availableReplicas: s.int32().optional().doc('How many Machines are Available.'),
    desiredReplicas: s.int32().optional().doc('How many Machines there should be.'),
    readyReplicas: s.int32().optional().doc('How many Machines are Ready.'),
    replicas: s.int32().optional().doc('How many Machines there are.'),
    upToDateReplicas: s.int32().optional().doc('How many Machines are as their template says.'),
    upgradePlan: upgradePlan.optional(),
    versions: replicasOfVersion.optional(),
  })
  .doc('How many Machines there are and should be, and their versions.')
export type ClusterReplicas = Infer<typeof clusterReplicas>

const initialization = s
  .object(
    {
      controlPlaneInitialized: s.boolean().optional().doc('True once the API server answered for the first time.'),
      infrastructureProvisioned: s.boolean().optional().doc('True once the infrastructure was there.'),
    },
    { minProperties: 1 },
  )
  .doc('Milestones of provisioning. They never go back.')
export type ClusterInitialization = Infer<typeof initialization>

const clusterSpec = s.object(
  {
    availabilityGates: conditionGates.optional(),
    clusterNetwork: s
      .object(
        {
          apiServerPort: s
            .int32({ minimum: 1, maximum: 65535 })
            .optional()
            .doc('Port that API servers should listen on; providers have a default of their own.'),
          pods: networkRanges.optional().doc('Addresses of Pods.'),
          serviceDomain: s
            .string({ minLength: 1, maxLength: 253 })
            .optional()
            .doc('Domain name of Services, such as cluster.local.'),
          services: networkRanges.optional().doc('Addresses of Services.'),
        },
        { minProperties: 1 },
      )
      .optional()
      .doc('Addresses and names within the cluster.'),
    controlPlaneEndpoint: apiEndpoint.optional(),
    controlPlaneRef: contractReference.optional(),
    infrastructureRef: contractReference.optional(),
    paused: s.boolean().optional().doc('While true, nothing of the Cluster is reconciled.'),
    topology: topology.optional(),
  },
  { minProperties: 1 },
)
export type ClusterSpec = Infer<typeof clusterSpec>

const clusterStatus = s.object(
  {
    conditions: s.conditions(),
    controlPlane: clusterReplicas.optional(),
    deprecated: s
      .object({
        v1beta1: s
          .object({
            conditions: legacyConditions.optional(),
            failureMessage: s
              .string({ minLength: 1, maxLength: 10240 })
              .optional()
              .doc('Why it failed for good, in words for people.'),
            failureReason: s.string().optional().doc('Why it failed for good, in one word for programs.'),
          })
          .optional(),
      })
      .optional()
      .doc('Status of v1beta1, kept while v1beta1 is served.'),
    failureDomains: failureDomains.optional(),
    initialization: initialization.optional(),
    observedGeneration: s.int64({ minimum: 1 }).optional().doc('The metadata.generation that was reconciled last.'),
    phase: s
      .enum('Pending', 'Provisioning', 'Provisioned', 'Deleting', 'Failed', 'Unknown')
      .optional()
      .doc('Where it is in its life, for people to read. Programs read conditions.'),
    workers: clusterReplicas.optional(),
  },
  { minProperties: 1 },
)
export type ClusterStatus = Infer<typeof clusterStatus>

/** Conditions of a Cluster. Reasons of mirrored conditions may also be the provider's own. */
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
    column('ClusterClass', '.spec.topology.classRef.name', { description: 'The class it is made from; empty when it has none' }),
    column('Available', '.status.conditions[?(@.type=="Available")].status', { description: 'Passes all availability checks' }),
    column('CP Desired', '.status.controlPlane.desiredReplicas', {
      type: 'integer',
      description: 'Control plane Machines that there should be',
    }),
    column('CP Current', '.status.controlPlane.replicas', {
      type: 'integer',
      priority: 10,
      description: 'Control plane Machines that there are',
    }),
    column('CP Ready', '.status.controlPlane.readyReplicas', {
      type: 'integer',
      priority: 10,
      description: 'Control plane Machines that are Ready',
    }),
    column('CP Available', '.status.controlPlane.availableReplicas', {
      type: 'integer',
      description: 'Control plane Machines that are Available',
    }),
    column('CP Up-to-date', '.status.controlPlane.upToDateReplicas', {
      type: 'integer',
      description: 'Control plane Machines that are as the spec says',
    }),
    column('W Desired', '.status.workers.desiredReplicas', {
      type: 'integer',
      description: 'Worker Machines that there should be',
    }),
    column('W Current', '.status.workers.replicas', {
      type: 'integer',
      priority: 10,
      description: 'Worker Machines that there are',
    }),
    column('W Ready', '.status.workers.readyReplicas', {
      type: 'integer',
      priority: 10,
      description: 'Worker Machines that are Ready',
    }),
    column('W Available', '.status.workers.availableReplicas', {
      type: 'integer',
      description: 'Worker Machines that are Available',
    }),
    column('W Up-to-date', '.status.workers.upToDateReplicas', {
      type: 'integer',
      description: 'Worker Machines that are as the spec says',
    }),
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10, description: 'Reconciliation paused' }),
    column('Phase', '.status.phase', { description: 'Where it is in its life' }),
    column('Age', '.metadata.creationTimestamp', { type: 'date', description: 'Time since creation' }),
    column('Version', '.spec.topology.version', { description: 'Kubernetes version' }),
  ],
  labels: contractLabels,
  default: defaultCluster,
  validate: clusterErrors,
})
export type Cluster = ObjectOf<typeof Cluster>
