import type { ObjectOf } from '@capstan/kube'
import { age, column, conditionTypes, defineKind, s } from '@capstan/kube'
import { simulatedMachine } from './local-machine.ts'
import { contractLabels, duration, failure, templateOf } from './shapes.ts'
import { immutableTemplate } from './template.ts'

const providerID = () => s.string({ minLength: 1, maxLength: 512 })

const spec = s.object({
  providerID: providerID().optional().doc('Identity of the pool. Set by the provider.'),
  providerIDList: s
    .list(providerID(), { maxItems: 10000 })
    .atomic()
    .optional()
    .doc('Identities of the machines, the same as on their Nodes. Set by the provider.'),
  machines: s
    .boolean()
    .optional()
    .doc('Whether core makes a Machine for each machine of the pool (MachinePool Machines). It should not change.'),
  template: s
    .object({ simulated: simulatedMachine() })
    .optional()
    .doc('What each machine is like. When it changes, machines are replaced one by one.'),
  simulated: s
    .object({
      provisioningDelay: duration().optional().doc('How long it takes until the pool can have machines. Default 0s.'),
      listDelay: duration().optional().doc('How long providerIDList lags behind a machine that runs. Default 0s.'),
      ghosts: s
        .list(providerID(), { maxItems: 100 })
        .atomic()
        .optional()
        .doc('Provider IDs in providerIDList that no machine has.'),
      lost: s
        .list(s.string({ minLength: 1, maxLength: 253 }), { maxItems: 100 })
        .atomic()
        .optional()
        .doc('Names of machines that are taken away without a drain, as spot machines are.'),
      replicas: s
        .int32({ minimum: 0 })
        .optional()
        .doc('How many machines an autoscaler of this provider wants: for MachinePools with the annotation replicas-managed-by.'),
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
  doc: 'LocalMachinePool is a group of equal machines of a Cluster, simulated in this process.',
  labels: contractLabels('infrastructure'),
  spec: spec.optional(),
  status: s.object({
    ready: s.boolean().optional().doc('The same as initialization.provisioned, for readers of contract v1beta1.'),
    initialization: s
      .object({ provisioned: s.boolean().optional().doc('True once the pool can have machines; never taken back.') })
      .optional()
      .doc('How far provisioning has come; Cluster API orchestrates by it.'),
    replicas: s.int32().optional().doc('How many machines there are.'),
    infrastructureMachineKind: s.string().optional().doc('Kind of the objects that stand for single machines.'),
    instances: s
      .list(
        s.object({
          instanceName: s.string().doc('Name of the LocalMachine, and of its Node.'),
          providerID: providerID().optional().doc('Identity of the machine.'),
          version: s.string().optional().doc('Kubernetes version.'),
          failureDomain: s.string().optional().doc('Where the machine was placed.'),
          ready: s.boolean().doc('Whether the machine runs and its Node is there.'),
        }),
        { maxItems: 10000 },
      )
      .atomic()
      .optional()
      .doc('The machines, for people to read.'),
    timeline: s
      .object({ provisioningStarted: s.timestamp().optional().doc('When provisioning began.') })
      .optional()
      .doc('When things happened: delays count from here, also after a restart of the provider.'),
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
  /** Mirrored by core as InfrastructureReady of the MachinePool. */
  Ready: ['Ready', 'NotReady', 'Deleting'],
  Provisioned: ['Provisioned', 'WaitingForClusterInfrastructure', 'Provisioning', 'ProvisioningFailed', 'Deleting'],
  MachinesReady: ['Ready', 'NotReady', 'WaitingForBootstrapData', 'Deleting'],
  Deleting: ['NotDeleting', 'Deleting'],
  Paused: ['Paused', 'NotPaused'],
})

/** On a LocalMachinePool until its machines are deleted. */
export const LocalMachinePoolFinalizer = 'localmachinepool.infrastructure.capstan.dev'

export const LocalMachinePoolTemplate = defineKind({
  group: 'infrastructure.capstan.dev',
  version: 'v1alpha1',
  kind: 'LocalMachinePoolTemplate',
  plural: 'localmachinepooltemplates',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'LocalMachinePoolTemplate is what ClusterClasses make LocalMachinePools from.',
  labels: contractLabels('infrastructure'),
  spec: templateOf(spec),
  columns: [age()],
  validate: immutableTemplate('LocalMachinePoolTemplate'),
})
export type LocalMachinePoolTemplate = ObjectOf<typeof LocalMachinePoolTemplate>
