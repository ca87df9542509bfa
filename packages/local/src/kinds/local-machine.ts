import type { ObjectOf } from '@capstan/kube'
import { age, column, conditionTypes, defineKind, s } from '@capstan/kube'
import { contractLabels, duration, failure, failureStatus, templateOf } from './shapes.ts'
import { immutableTemplate } from './template.ts'

/** Schema of the field `simulated` of a LocalMachine, and of the machine template in a LocalMachinePool. */
export const simulatedMachine = () =>
  s
    .object({
      provisioningDelay: duration()
        .optional()
        .doc(
          'Duration of provisioning, which begins when the infrastructure of the Cluster is provisioned and the bootstrap data exist. Default 0s.',
        ),
      nodeDelay: duration()
        .optional()
        .doc(
          'Time from the start of the machine until its Node registers and, on a control plane, its API server runs. Default 0s.',
        ),
      deletionDelay: duration().optional().doc('Duration of the deletion of the machine. Default 0s.'),
      failure: failure('provisioning', 'node', 'kubelet', 'deletion'),
    })
    .optional()
    .doc('How the simulated machine behaves.')

const spec = s.object({
  providerID: s
    .string({ minLength: 1, maxLength: 512 })
    .optional()
    .doc('Provider ID of the machine, the same as on its Node. Set by the provider.'),
  simulated: simulatedMachine(),
  pool: s
    .object({
      dataSecretName: s.string({ minLength: 1, maxLength: 253 }).doc('Secret with the bootstrap data.'),
      version: s.string({ minLength: 1, maxLength: 256 }).optional().doc('Kubernetes version.'),
      failureDomain: s.string({ minLength: 1, maxLength: 256 }).optional().doc('Failure domain of the machine.'),
    })
    .optional()
    .doc('Boot settings of a machine of a LocalMachinePool; other machines take them from their Machine. Set by the provider.'),
})

/** A LocalMachine is one simulated machine: it boots from bootstrap data and registers a Node in its cluster. */
export const LocalMachine = defineKind({
  group: 'infrastructure.capstan.dev',
  version: 'v1alpha1',
  kind: 'LocalMachine',
  plural: 'localmachines',
  shortNames: ['lm'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'LocalMachine is one machine of a Cluster, simulated by the local provider.',
  labels: contractLabels('infrastructure'),
  spec: spec.optional(),
  status: s.object({
    initialization: s
      .object({ provisioned: s.boolean().optional().doc('True once the machine runs; never false again.') })
      .optional()
      .doc('Milestones of provisioning that Cluster API waits for.'),
    failureDomain: s.string({ minLength: 1, maxLength: 256 }).optional().doc('Failure domain of the machine.'),
    addresses: s
      .list(
        s.object({
          type: s.enum('Hostname', 'ExternalIP', 'InternalIP', 'ExternalDNS', 'InternalDNS').doc('Type of the address.'),
          address: s.string({ minLength: 1, maxLength: 256 }).doc('The address.'),
        }),
        { maxItems: 256 },
      )
      .atomic()
      .optional()
      .doc('Addresses of the machine.'),
    timeline: s
      .object({
        provisioningStarted: s.timestamp().optional().doc('When provisioning began.'),
        provisioned: s.timestamp().optional().doc('When the machine started to run.'),
      })
      .optional()
      .doc('Times of past steps. Simulated delays are measured from these times, also after a restart of the provider.'),
    ...failureStatus,
    conditions: s.conditions(),
  }),
  columns: [
    column('Cluster', '.metadata.labels.cluster\\.x-k8s\\.io/cluster-name'),
    column('Machine', '.metadata.ownerReferences[?(@.kind=="Machine")].name'),
    column('Provider ID', '.spec.providerID', { priority: 10 }),
    column('Ready', '.status.conditions[?(@.type=="Ready")].status'),
    column('Provisioned', '.status.initialization.provisioned', { type: 'boolean' }),
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10 }),
    age(),
  ],
})
export type LocalMachine = ObjectOf<typeof LocalMachine>

export const LocalMachineConditions = conditionTypes({
  /** Mirrored by core as InfrastructureReady of the Machine. */
  Ready: ['Ready', 'NotReady', 'Deleting'],
  Provisioned: [
    'Provisioned',
    'WaitingForClusterInfrastructure',
    'WaitingForBootstrapData',
    'Provisioning',
    'ProvisioningFailed',
    'Deleting',
  ],
  NodeProvisioned: [
    'Provisioned',
    'WaitingForMachine',
    'WaitingForControlPlane',
    'Provisioning',
    'ProvisioningFailed',
    'KubeletFailed',
    'BootstrapDataExpired',
    'Deleting',
  ],
  Deleting: ['NotDeleting', 'Deleting', 'DeletionFailed'],
  Paused: ['Paused', 'NotPaused'],
})

/** Finalizer of a LocalMachine from the beginning of its provisioning until the simulated machine is deleted. */
export const LocalMachineFinalizer = 'localmachine.infrastructure.capstan.dev'

export const LocalMachineTemplate = defineKind({
  group: 'infrastructure.capstan.dev',
  version: 'v1alpha1',
  kind: 'LocalMachineTemplate',
  plural: 'localmachinetemplates',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'LocalMachineTemplate is the template from which control planes and MachineSets create LocalMachines.',
  labels: contractLabels('infrastructure'),
  spec: templateOf(spec),
  columns: [age()],
  validate: immutableTemplate('LocalMachineTemplate'),
})
export type LocalMachineTemplate = ObjectOf<typeof LocalMachineTemplate>
