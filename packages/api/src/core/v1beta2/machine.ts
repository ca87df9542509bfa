/** Machine: one host of a Cluster. Upstream: api/core/v1beta2/machine_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { defaultMachine, machineErrors } from './admission/machine.ts'
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
    certificatesExpiryDate: s.timestamp().optional().doc('When certificates of a control plane Machine expire.'),
    conditions: s.conditions(),
    deletion: s
      .object({
        nodeDrainStartTime: s.timestamp().optional().doc('When draining began.'),
        waitForNodeVolumeDetachStartTime: s.timestamp().optional().doc('When waiting for volumes began.'),
        waitForPreDrainHookStartTime: s.timestamp().optional().doc('When waiting for pre-drain hooks began.'),
        waitForPreTerminateHookStartTime: s.timestamp().optional().doc('When waiting for pre-terminate hooks began.'),
      })
      .optional()
      .doc('Since when the deletion waits for each of its steps.'),
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
    failureDomain: s.string({ minLength: 1, maxLength: 256 }).optional().doc('Where the infrastructure placed the machine.'),
    initialization: s
      .object(
        {
          bootstrapDataSecretCreated: s.boolean().optional().doc('True once the bootstrap data was there.'),
          infrastructureProvisioned: s.boolean().optional().doc('True once the infrastructure was there.'),
        },
        { minProperties: 1 },
      )
      .optional()
      .doc('Milestones of provisioning. They never go back.'),
    lastUpdated: s.timestamp().optional().doc('When the phase last changed.'),
    nodeInfo: nodeInfo.optional(),
    nodeRef: s
      .object({
        name: s.string({ minLength: 1, maxLength: 253, pattern: dnsSubdomain }),
      })
      .optional()
      .doc('The Node that runs on the machine.'),
    observedGeneration: s.int64({ minimum: 1 }).optional().doc('The metadata.generation that was reconciled last.'),
    phase: s
      .enum('Pending', 'Provisioning', 'Provisioned', 'Running', 'Updating', 'Deleting', 'Deleted', 'Failed', 'Unknown')
      .optional()
      .doc('Where it is in its life, for people to read. Programs read conditions.'),
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
    column('Cluster', '.spec.clusterName', { description: 'Name of the Cluster it belongs to' }),
    column('Node Name', '.status.nodeRef.name', { description: 'Node that runs on the machine' }),
    column('Provider ID', '.spec.providerID', { priority: 10, description: 'Names the host among all of its provider' }),
    column('Failure domain', '.status.failureDomain', { description: 'Where the machine was placed' }),
    column('Ready', '.status.conditions[?(@.type=="Ready")].status', { description: 'Passes all readiness checks' }),
    column('Available', '.status.conditions[?(@.type=="Available")].status', { description: 'Passes all availability checks' }),
    column('Up-to-date', '.status.conditions[?(@.type=="UpToDate")].status', { description: 'As its owner says' }),
    column('Internal-IP', '.status.addresses[?(@.type=="InternalIP")].address', {
      priority: 10,
      description: 'Address within its network',
    }),
    column('External-IP', '.status.addresses[?(@.type=="ExternalIP")].address', {
      priority: 10,
      description: 'Address from outside',
    }),
    column('OS-Image', '.status.nodeInfo.osImage', { priority: 10, description: 'Operating system that the Node reports' }),
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10, description: 'Reconciliation paused' }),
    column('Phase', '.status.phase', { description: 'Where it is in its life' }),
    column('Age', '.metadata.creationTimestamp', { type: 'date', description: 'Time since creation' }),
    column('Version', '.spec.version', { description: 'Kubernetes version' }),
  ],
  labels: contractLabels,
  default: defaultMachine,
  validate: machineErrors,
})
export type Machine = ObjectOf<typeof Machine>
