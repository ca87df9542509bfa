/** The kind Machine, one host of a Cluster. Upstream: api/core/v1beta2/machine_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { olderVersions } from '../../conversion/older-versions.ts'
import { defaultMachine, machineErrors } from './admission/machine.ts'
import { ageColumn, availableColumn, clusterColumn, pausedColumn, phaseColumn, versionColumn } from './shared/columns.ts'
import { observedGeneration, phase } from './shared/common-fields.ts'
import { coreLabels } from './shared/core-labels.ts'
import { legacyFailure, legacyStatus } from './shared/legacy-status.ts'
import { nonEmpty, objectName, shortText } from './shared/limits.ts'
import { type MachineSpec, machineSpec } from './shared/machine-template.ts'

const nodeInfo = s
  .object({
    machineID: s.string(),
    systemUUID: s.string(),
    bootID: s.string(),
    kernelVersion: s.string(),
    osImage: s.string(),
    containerRuntimeVersion: s.string(),
    kubeletVersion: s.string(),
    kubeProxyVersion: s.string(),
    operatingSystem: s.string(),
    architecture: s.string(),
    swap: s.object({ capacity: s.int64().optional() }).optional(),
  })
  .doc('Properties of the machine, as the Node reports them.')
export interface MachineNodeInfo extends Infer<typeof nodeInfo> {}

const machineAddresses = s
  .list(
    s.object({
      type: s.enum('Hostname', 'ExternalIP', 'InternalIP', 'ExternalDNS', 'InternalDNS'),
      address: s.string(shortText),
    }),
    { maxItems: 256 },
  )
  .atomic()
  .doc('Addresses of the machine.')
export type MachineAddress = Infer<typeof machineAddresses>[number]

const initialization = s
  .object(
    {
      bootstrapDataSecretCreated: s.boolean().optional().doc('True once the bootstrap data was created.'),
      infrastructureProvisioned: s.boolean().optional().doc('True once the infrastructure was provisioned.'),
    },
    nonEmpty,
  )
  .doc('Milestones of provisioning. They never become false again.')

const deletionProgress = s
  .object({
    nodeDrainStartTime: s.timestamp().optional().doc('When draining began.'),
    waitForNodeVolumeDetachStartTime: s.timestamp().optional().doc('When waiting for volumes began.'),
    waitForPreDrainHookStartTime: s.timestamp().optional().doc('When waiting for pre-drain hooks began.'),
    waitForPreTerminateHookStartTime: s.timestamp().optional().doc('When waiting for pre-terminate hooks began.'),
  })
  .doc('When the steps of the deletion began.')

const machineStatus = s.object(
  {
    conditions: s.conditions(),
    phase: phase('Pending', 'Provisioning', 'Provisioned', 'Running', 'Updating', 'Deleting', 'Deleted', 'Failed', 'Unknown'),
    lastUpdated: s.timestamp().optional().doc('When the phase last changed.'),
    initialization: initialization.optional(),
    nodeRef: s
      .object({ name: s.string(objectName) })
      .optional()
      .doc('The Node of the machine.'),
    nodeInfo: nodeInfo.optional(),
    addresses: machineAddresses.optional(),
    failureDomain: s.string(shortText).optional().doc('Failure domain in which the infrastructure placed the machine.'),
    certificatesExpiryDate: s.timestamp().optional().doc('When certificates of a control plane Machine expire.'),
    deletion: deletionProgress.optional(),
    observedGeneration,
    deprecated: legacyStatus(legacyFailure),
  },
  nonEmpty,
)
export interface MachineStatus extends Infer<typeof machineStatus> {}

/** Conditions of a Machine. A condition that is copied from a provider object may also have other reasons, which the provider defines. */
export const MachineConditions = conditionTypes({
  Available: ['Available', 'NotReady', 'WaitingForMinReadySeconds', 'InternalError'],
  Ready: ['Ready', 'NotReady', 'ReadyUnknown', 'InternalError'],
  UpToDate: ['UpToDate', 'NotUpToDate', 'Updating'],
  BootstrapConfigReady: [
    'Ready',
    'NotReady',
    'DataSecretProvided',
    'ObjectDoesNotExist',
    'ObjectDeleted',
    'InvalidConditionReported',
    'InternalError',
  ],
  InfrastructureReady: ['Ready', 'NotReady', 'ObjectDoesNotExist', 'ObjectDeleted', 'InvalidConditionReported', 'InternalError'],
  NodeHealthy: [
    'NodeHealthy',
    'NodeNotHealthy',
    'NodeHealthyUnknown',
    'NodeDeleted',
    'NodeDoesNotExist',
    'InspectionFailed',
    'ConnectionDown',
    'InternalError',
  ],
  NodeReady: [
    'NodeReady',
    'NodeNotReady',
    'NodeReadyUnknown',
    'NodeDeleted',
    'NodeDoesNotExist',
    'InspectionFailed',
    'ConnectionDown',
    'InternalError',
  ],
  HealthCheckSucceeded: [
    'HealthCheckSucceeded',
    'NodeStartupTimeout',
    'NodeDeleted',
    'UnhealthyNode',
    'UnhealthyMachine',
    'HasRemediateAnnotation',
  ],
  OwnerRemediated: ['WaitingForRemediation', 'RemediationDeferred', 'CannotBeRemediated', 'MachineDeleting'],
  ExternallyRemediated: ['WaitingForRemediation', 'RemediationTemplateNotFound', 'RemediationRequestCreationFailed'],
  Updating: ['InPlaceUpdating', 'InPlaceUpdateFailed', 'NotUpdating'],
  Deleting: [
    'NotDeleting',
    'Deleting',
    'WaitingForPreDrainHook',
    'DrainingNode',
    'WaitingForVolumeDetach',
    'WaitingForPreTerminateHook',
    'WaitingForInfrastructureDeletion',
    'WaitingForBootstrapDeletion',
    'DeletingNode',
    'DeletionCompleted',
    'InternalError',
  ],
  Paused: ['Paused', 'NotPaused'],
})

export const Machine = defineKind({
  group: 'cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'Machine',
  plural: 'machines',
  shortNames: ['ma'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'A host that runs a Kubernetes Node: its bootstrap data, its infrastructure and its Node.',
  spec: machineSpec,
  status: machineStatus,

  columns: [
    clusterColumn,
    column('Node Name', '.status.nodeRef.name', { description: 'Node that runs on the machine' }),
    column('Provider ID', '.spec.providerID', { priority: 10, description: 'Identifies the machine at its provider' }),
    column('Failure domain', '.status.failureDomain', { description: 'Failure domain of the machine' }),
    column('Ready', '.status.conditions[?(@.type=="Ready")].status', { description: 'Passes all readiness checks' }),
    availableColumn,
    column('Up-to-date', '.status.conditions[?(@.type=="UpToDate")].status', {
      description: 'Whether the Machine is up to date with its owner',
    }),
    column('Internal-IP', '.status.addresses[?(@.type=="InternalIP")].address', {
      priority: 10,
      description: 'Address inside of the network of the machine',
    }),
    column('External-IP', '.status.addresses[?(@.type=="ExternalIP")].address', {
      priority: 10,
      description: 'Address outside of the network of the machine',
    }),
    column('OS-Image', '.status.nodeInfo.osImage', { priority: 10, description: 'Operating system that the Node reports' }),
    pausedColumn,
    phaseColumn,
    ageColumn,
    versionColumn('.spec.version'),
  ],
  labels: coreLabels,
  versions: olderVersions('cluster.x-k8s.io', 'Machine'),
  default: defaultMachine,
  validate: machineErrors,
})
export interface Machine extends ObjectOf<typeof Machine> {
  spec: MachineSpec
  status?: MachineStatus
}
