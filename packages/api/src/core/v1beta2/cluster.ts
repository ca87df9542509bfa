/** Cluster: one workload cluster. Upstream: api/core/v1beta2/cluster_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
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
    cidrBlocks: s.list(s.string({ minLength: 1, maxLength: 43 }), { minItems: 1, maxItems: 100 }).atomic(),
  })
  .doc('Ranges of addresses.')
export type NetworkRanges = Infer<typeof networkRanges>

const apiEndpoint = s
  .object(
    {
      host: s.string({ minLength: 1, maxLength: 512 }).optional(),
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
            enabled: s.boolean().optional(),
            remediation: s
              .object(
                {
                  templateRef: templateReference.optional(),
                  triggerIf: remediationTrigger.optional(),
                },
                { minProperties: 1 },
              )
              .optional(),
          },
          { minProperties: 1 },
        )
        .optional(),
      metadata: objectMeta.optional(),
      readinessGates: conditionGates.optional(),
      replicas: s.int32().optional(),
      rollout: s
        .object(
          {
            after: s.timestamp().optional(),
          },
          { minProperties: 1 },
        )
        .optional(),
      taints: machineTaints.optional(),
      variables: variableOverrides.optional(),
    },
    { minProperties: 1 },
  )
  .doc('The control plane of a managed topology.')
export type ControlPlaneTopology = Infer<typeof controlPlaneTopology>

const machineDeploymentTopology = s
  .object({
    class: s.string({ minLength: 1, maxLength: 256 }),
    deletion: machineDeploymentDeletion.optional(),
    failureDomain: s.string({ minLength: 1, maxLength: 256 }).optional(),
    healthCheck: s
      .object(
        {
          checks: healthChecks.optional(),
          enabled: s.boolean().optional(),
          remediation: s
            .object(
              {
                maxInFlight: s.intOrString().optional(),
                templateRef: templateReference.optional(),
                triggerIf: remediationTrigger.optional(),
              },
              { minProperties: 1 },
            )
            .optional(),
        },
        { minProperties: 1 },
      )
      .optional(),
    metadata: objectMeta.optional(),
    minReadySeconds: s.int32({ minimum: 0 }).optional(),
    name: s.string({ minLength: 1, maxLength: 63, pattern: dnsSubdomain }),
    readinessGates: conditionGates.optional(),
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
    taints: machineTaints.optional(),
    variables: variableOverrides.optional(),
  })
  .doc('One MachineDeployment of a managed topology.')
export type MachineDeploymentTopology = Infer<typeof machineDeploymentTopology>

const machinePoolTopology = s
  .object({
    class: s.string({ minLength: 1, maxLength: 256 }),
    deletion: nodeDeletion.optional(),
    failureDomains: s
      .list(s.string({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 100 })
      .atomic()
      .optional(),
    metadata: objectMeta.optional(),
    minReadySeconds: s.int32({ minimum: 0 }).optional(),
    name: s.string({ minLength: 1, maxLength: 63, pattern: dnsSubdomain }),
    replicas: s.int32().optional(),
    taints: machineTaints.optional(),
    variables: variableOverrides.optional(),
  })
  .doc('One MachinePool of a managed topology.')
export type MachinePoolTopology = Infer<typeof machinePoolTopology>

const topology = s
  .object({
    classRef: s.object({
      name: s.string({ minLength: 1, maxLength: 253, pattern: dnsSubdomain }),
      namespace: s.string({ minLength: 1, maxLength: 63, pattern: dnsLabel }).optional(),
    }),
    controlPlane: controlPlaneTopology.optional(),
    variables: variableValues.optional(),
    version: s.string({ minLength: 1, maxLength: 256 }),
    workers: s
      .object(
        {
          machineDeployments: s.list(machineDeploymentTopology, { minItems: 1, maxItems: 2000 }).listMap('name').optional(),
          machinePools: s.list(machinePoolTopology, { minItems: 1, maxItems: 2000 }).listMap('name').optional(),
        },
        { minProperties: 1 },
      )
      .optional(),
  })
  .doc('A cluster described by a ClusterClass: its objects are made and kept by the topology controller.')
export type ClusterTopology = Infer<typeof topology>

const failureDomains = s
  .list(
    s.object({
      attributes: s.map(s.string()).optional(),
      controlPlane: s.boolean().optional(),
      name: s.string({ minLength: 1, maxLength: 256 }),
    }),
    { minItems: 1, maxItems: 100 },
  )
  .listMap('name')
  .doc('Where Machines can be placed so that they do not fail together.')
export type FailureDomain = Infer<typeof failureDomains>[number]

const clusterReplicas = s
  .object({
    availableReplicas: s.int32().optional(),
    desiredReplicas: s.int32().optional(),
    readyReplicas: s.int32().optional(),
    replicas: s.int32().optional(),
    upToDateReplicas: s.int32().optional(),
    upgradePlan: upgradePlan.optional(),
    versions: replicasOfVersion.optional(),
  })
  .doc('How many Machines there are and should be, and their versions.')
export type ClusterReplicas = Infer<typeof clusterReplicas>

const initialization = s
  .object(
    {
      controlPlaneInitialized: s.boolean().optional(),
      infrastructureProvisioned: s.boolean().optional(),
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
          apiServerPort: s.int32({ minimum: 1, maximum: 65535 }).optional(),
          pods: networkRanges.optional(),
          serviceDomain: s.string({ minLength: 1, maxLength: 253 }).optional(),
          services: networkRanges.optional(),
        },
        { minProperties: 1 },
      )
      .optional(),
    controlPlaneEndpoint: apiEndpoint.optional(),
    controlPlaneRef: contractReference.optional(),
    infrastructureRef: contractReference.optional(),
    paused: s.boolean().optional(),
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
            failureMessage: s.string({ minLength: 1, maxLength: 10240 }).optional(),
            failureReason: s.string().optional(),
          })
          .optional(),
      })
      .optional(),
    failureDomains: failureDomains.optional(),
    initialization: initialization.optional(),
    observedGeneration: s.int64({ minimum: 1 }).optional(),
    phase: s.enum('Pending', 'Provisioning', 'Provisioned', 'Deleting', 'Failed', 'Unknown').optional(),
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
    column('ClusterClass', '.spec.topology.classRef.name'),
    column('Available', '.status.conditions[?(@.type=="Available")].status'),
    column('CP Desired', '.status.controlPlane.desiredReplicas', { type: 'integer' }),
    column('CP Current', '.status.controlPlane.replicas', { type: 'integer', priority: 10 }),
    column('CP Ready', '.status.controlPlane.readyReplicas', { type: 'integer', priority: 10 }),
    column('CP Available', '.status.controlPlane.availableReplicas', { type: 'integer' }),
    column('CP Up-to-date', '.status.controlPlane.upToDateReplicas', { type: 'integer' }),
    column('W Desired', '.status.workers.desiredReplicas', { type: 'integer' }),
    column('W Current', '.status.workers.replicas', { type: 'integer', priority: 10 }),
    column('W Ready', '.status.workers.readyReplicas', { type: 'integer', priority: 10 }),
    column('W Available', '.status.workers.availableReplicas', { type: 'integer' }),
    column('W Up-to-date', '.status.workers.upToDateReplicas', { type: 'integer' }),
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10 }),
    column('Phase', '.status.phase'),
    column('Age', '.metadata.creationTimestamp', { type: 'date' }),
    column('Version', '.spec.topology.version'),
  ],
  labels: contractLabels,
})
export type Cluster = ObjectOf<typeof Cluster>
