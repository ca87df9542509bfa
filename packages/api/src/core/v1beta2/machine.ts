/** Machine: one host of a Cluster. Upstream: api/core/v1beta2/machine_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { contractLabels } from './shared/crd-labels.ts'
import { legacyConditions } from './shared/legacy-status.ts'
import { machineSpec } from './shared/machine-template.ts'
import { dnsSubdomain } from './shared/patterns.ts'

const nodeInfo = s
  .object({
    architecture: s.string(),
    bootID: s.string(),
    containerRuntimeVersion: s.string(),
    kernelVersion: s.string(),
    kubeProxyVersion: s.string(),
    kubeletVersion: s.string(),
    machineID: s.string(),
    operatingSystem: s.string(),
    osImage: s.string(),
    swap: s
      .object({
        capacity: s.int64().optional(),
      })
      .optional(),
    systemUUID: s.string(),
  })
  .doc('What the Node says about its machine.')
export type MachineNodeInfo = Infer<typeof nodeInfo>

const machineAddresses = s
  .list(
    s.object({
      address: s.string({ minLength: 1, maxLength: 256 }),
      type: s.enum('Hostname', 'ExternalIP', 'InternalIP', 'ExternalDNS', 'InternalDNS'),
    }),
    { maxItems: 256 },
  )
  .atomic()
  .doc('Addresses of the machine.')
export type MachineAddress = Infer<typeof machineAddresses>[number]

const machineStatus = s.object(
  {
    addresses: machineAddresses.optional(),
    certificatesExpiryDate: s.timestamp().optional(),
    conditions: s.conditions(),
    deletion: s
      .object({
        nodeDrainStartTime: s.timestamp().optional(),
        waitForNodeVolumeDetachStartTime: s.timestamp().optional(),
        waitForPreDrainHookStartTime: s.timestamp().optional(),
        waitForPreTerminateHookStartTime: s.timestamp().optional(),
      })
      .optional(),
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
    failureDomain: s.string({ minLength: 1, maxLength: 256 }).optional(),
    initialization: s
      .object(
        {
          bootstrapDataSecretCreated: s.boolean().optional(),
          infrastructureProvisioned: s.boolean().optional(),
        },
        { minProperties: 1 },
      )
      .optional(),
    lastUpdated: s.timestamp().optional(),
    nodeInfo: nodeInfo.optional(),
    nodeRef: s
      .object({
        name: s.string({ minLength: 1, maxLength: 253, pattern: dnsSubdomain }),
      })
      .optional(),
    observedGeneration: s.int64({ minimum: 1 }).optional(),
    phase: s
      .enum('Pending', 'Provisioning', 'Provisioned', 'Running', 'Updating', 'Deleting', 'Deleted', 'Failed', 'Unknown')
      .optional(),
  },
  { minProperties: 1 },
)
export type MachineStatus = Infer<typeof machineStatus>

/** Conditions of a Machine. Reasons of mirrored conditions may also be the provider's own. */
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
    column('Cluster', '.spec.clusterName'),
    column('Node Name', '.status.nodeRef.name'),
    column('Provider ID', '.spec.providerID', { priority: 10 }),
    column('Failure domain', '.status.failureDomain'),
    column('Ready', '.status.conditions[?(@.type=="Ready")].status'),
    column('Available', '.status.conditions[?(@.type=="Available")].status'),
    column('Up-to-date', '.status.conditions[?(@.type=="UpToDate")].status'),
    column('Internal-IP', '.status.addresses[?(@.type=="InternalIP")].address', { priority: 10 }),
    column('External-IP', '.status.addresses[?(@.type=="ExternalIP")].address', { priority: 10 }),
    column('OS-Image', '.status.nodeInfo.osImage', { priority: 10 }),
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10 }),
    column('Phase', '.status.phase'),
    column('Age', '.metadata.creationTimestamp', { type: 'date' }),
    column('Version', '.spec.version'),
  ],
  labels: contractLabels,
})
export type Machine = ObjectOf<typeof Machine>
