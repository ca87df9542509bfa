import type { ObjectOf } from '@capstan/kube'
import { age, column, conditionTypes, defineKind, s } from '@capstan/kube'
import { simulatedMachine } from './local-machine.ts'
import { contractLabels, duration, failure, failureStatus, templateOf } from './shapes.ts'
import { immutableTemplate } from './template.ts'

const providerID = () => s.string({ minLength: 1, maxLength: 512 })

const spec = s.object({
  providerID: providerID().optional().doc('Provider ID of the pool. Set by the provider.'),
  providerIDList: s
    .list(providerID(), { maxItems: 10000 })
    .atomic()
    .optional()
    .doc('Provider IDs of the machines, the same as on their Nodes, and the IDs in simulated.ghosts. Set by the provider.'),
  machines: s
    .boolean()
    .optional()
    .doc('Whether core creates a Machine for each machine of the pool (MachinePool Machines). Do not change this field later.'),
  template: s
    .object({ simulated: simulatedMachine() })
    .optional()
    .doc('Settings of each machine. When they change, machines are replaced one by one.'),
  simulated: s
    .object({
      provisioningDelay: duration()
        .optional()
        .doc(
          'Duration of provisioning, which begins when the infrastructure of the Cluster is provisioned. The pool has no machines before its provisioning ends. Default 0s.',
        ),
      listDelay: duration()
        .optional()
        .doc('Time from the start of a machine until its provider ID is added to providerIDList. Default 0s.'),
      ghosts: s
        .list(providerID(), { maxItems: 100 })
        .atomic()
        .optional()
        .doc('Additional provider IDs in providerIDList that belong to no machine.'),
      lost: s
        .list(s.string({ minLength: 1, maxLength: 253 }), { maxItems: 100 })
        .atomic()
        .optional()
        .doc('Names of machines that are removed without a drain, as spot instances are.'),
      replicas: s
        .int32({ minimum: 0 })
        .optional()
        .doc(
          'Number of machines that a simulated autoscaler of the provider requests, for MachinePools whose annotation cluster.x-k8s.io/replicas-managed-by has a value other than false.',
        ),
      failure: failure('provisioning'),
    })
    .optional()
    .doc('How the simulated pool behaves.'),
})

/** A LocalMachinePool is a group of equal machines, such as an auto scaling group, with the replicas of its MachinePool. */
export const LocalMachinePool = defineKind({
  group: 'infrastructure.capstan.dev',
  version: 'v1alpha1',
  kind: 'LocalMachinePool',
  plural: 'localmachinepools',
  shortNames: ['lmp'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'LocalMachinePool is a group of equal machines of a Cluster, simulated by the local provider.',
  labels: contractLabels('infrastructure'),
  spec: spec.optional(),
  status: s.object({
    ready: s.boolean().optional().doc('The same as initialization.provisioned, for clients of contract v1beta1.'),
    initialization: s
      .object({ provisioned: s.boolean().optional().doc('True once the pool can have machines; never false again.') })
      .optional()
      .doc('Milestones of provisioning that Cluster API waits for.'),
    replicas: s.int32().optional().doc('Number of machines.'),
    infrastructureMachineKind: s.string().optional().doc('Kind of the infrastructure objects of the individual machines.'),
    instances: s
      .list(
        s.object({
          instanceName: s.string().doc('Name of the LocalMachine, and of its Node.'),
          providerID: providerID().optional().doc('Provider ID of the machine.'),
          version: s.string().optional().doc('Kubernetes version.'),
          failureDomain: s.string().optional().doc('Failure domain of the machine.'),
          ready: s.boolean().doc('Whether the condition Ready of the LocalMachine is True.'),
        }),
        { maxItems: 10000 },
      )
      .atomic()
      .optional()
      .doc('The machines, for people to read.'),
    timeline: s
      .object({ provisioningStarted: s.timestamp().optional().doc('When provisioning began.') })
      .optional()
      .doc('Times of past steps. provisioningDelay is measured from provisioningStarted, also after a restart of the provider.'),
    ...failureStatus,
    conditions: s.conditions(),
  }),
  columns: [
    column('Cluster', '.metadata.labels.cluster\\.x-k8s\\.io/cluster-name'),
    column('Replicas', '.status.replicas', { type: 'integer' }),
    column('Ready', '.status.conditions[?(@.type=="Ready")].status'),
    column('Provisioned', '.status.initialization.provisioned', { type: 'boolean' }),
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10 }),
    age(),
  ],
})
export type LocalMachinePool = ObjectOf<typeof LocalMachinePool>

export const LocalMachinePoolConditions = conditionTypes({
  /** Mirrored by core as InfrastructureReady in the v1beta1 conditions of the MachinePool. */
  Ready: ['Ready', 'NotReady', 'Deleting'],
  Provisioned: ['Provisioned', 'WaitingForClusterInfrastructure', 'Provisioning', 'ProvisioningFailed', 'Deleting'],
  MachinesReady: ['Ready', 'NotReady', 'WaitingForBootstrapData', 'Deleting'],
  Deleting: ['NotDeleting', 'Deleting'],
  Paused: ['Paused', 'NotPaused'],
})

/** Finalizer of a LocalMachinePool until its machines are deleted. */
export const LocalMachinePoolFinalizer = 'localmachinepool.infrastructure.capstan.dev'

export const LocalMachinePoolTemplate = defineKind({
  group: 'infrastructure.capstan.dev',
  version: 'v1alpha1',
  kind: 'LocalMachinePoolTemplate',
  plural: 'localmachinepooltemplates',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'LocalMachinePoolTemplate is the template from which the LocalMachinePools of Clusters with a ClusterClass are created.',
  labels: contractLabels('infrastructure'),
  spec: templateOf(spec),
  columns: [age()],
  validate: immutableTemplate('LocalMachinePoolTemplate'),
})
export type LocalMachinePoolTemplate = ObjectOf<typeof LocalMachinePoolTemplate>
