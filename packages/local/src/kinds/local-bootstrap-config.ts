import type { ObjectOf } from '@capstan/kube'
import { age, column, conditionTypes, defineKind, s } from '@capstan/kube'
import { contractLabels, duration, failure, failureStatus, templateOf } from './shapes.ts'
import { immutableTemplate } from './template.ts'

/** Spec of a LocalBootstrapConfig. Also a field of a LocalControlPlane, which creates the LocalBootstrapConfigs of its machines. */
export const bootstrapConfigSpec = s.object({
  nodeLabels: s.map(s.string()).optional().doc('Labels with which the Node registers.'),
  nodeTaints: s
    .list(
      s.object({
        key: s.string({ minLength: 1, maxLength: 317 }).doc('Key of the taint.'),
        value: s.string({ maxLength: 63 }).optional().doc('Value of the taint.'),
        effect: s.enum('NoSchedule', 'PreferNoSchedule', 'NoExecute').doc('Effect on Pods that do not tolerate the taint.'),
      }),
      { maxItems: 64 },
    )
    .atomic()
    .optional()
    .doc('Taints with which the Node registers, in addition to those of its role.'),
  format: s.enum('cloud-config', 'ignition').optional().doc('Format of the bootstrap data. Default cloud-config.'),
  ttlSeconds: s
    .int32({ minimum: 0 })
    .optional()
    .doc(
      'How long a machine can join with the data; 0 means without limit. The data are renewed after half of this time. For a Machine, the renewal ends when the Machine has its Node; for a MachinePool, when the MachinePool is deleted. Data created before the control plane is initialized have no time limit. Default 900.',
    ),
  simulated: s
    .object({
      delay: duration().optional().doc('Duration of the creation of the data. Default 0s.'),
      failure: failure('data'),
    })
    .optional()
    .doc('How the simulated bootstrapping behaves.'),
})

/** A LocalBootstrapConfig creates the bootstrap data with which a machine joins as a Node. */
export const LocalBootstrapConfig = defineKind({
  group: 'bootstrap.capstan.dev',
  version: 'v1alpha1',
  kind: 'LocalBootstrapConfig',
  plural: 'localbootstrapconfigs',
  shortNames: ['lbc'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'LocalBootstrapConfig creates the bootstrap data of one Machine or MachinePool.',
  labels: contractLabels('bootstrap'),
  spec: bootstrapConfigSpec.optional(),
  status: s.object({
    initialization: s
      .object({ dataSecretCreated: s.boolean().optional().doc('True once the data Secret is created; never false again.') })
      .optional()
      .doc('Milestones of bootstrapping that Cluster API waits for.'),
    dataSecretName: s.string({ minLength: 1, maxLength: 253 }).optional().doc('Secret that holds the bootstrap data.'),
    timeline: s
      .object({ started: s.timestamp().optional().doc('When all inputs of the bootstrap data existed.') })
      .optional()
      .doc('Times of past steps. Simulated delays are measured from these times, also after a restart of the provider.'),
    ...failureStatus,
    conditions: s.conditions(),
  }),
  columns: [
    column('Cluster', '.metadata.labels.cluster\\.x-k8s\\.io/cluster-name'),
    column('Ready', '.status.conditions[?(@.type=="Ready")].status'),
    column('Data secret created', '.status.initialization.dataSecretCreated', { type: 'boolean' }),
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10 }),
    age(),
  ],
})
export type LocalBootstrapConfig = ObjectOf<typeof LocalBootstrapConfig>

export const LocalBootstrapConfigConditions = conditionTypes({
  /** Mirrored by core as BootstrapConfigReady of the Machine. */
  Ready: ['Ready', 'NotReady'],
  DataSecretAvailable: ['Available', 'NotAvailable', 'Failed'],
  Paused: ['Paused', 'NotPaused'],
})

export const LocalBootstrapConfigTemplate = defineKind({
  group: 'bootstrap.capstan.dev',
  version: 'v1alpha1',
  kind: 'LocalBootstrapConfigTemplate',
  plural: 'localbootstrapconfigtemplates',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'LocalBootstrapConfigTemplate is the template from which LocalBootstrapConfigs of MachineSets, and of MachinePools of a ClusterClass, are created.',
  labels: contractLabels('bootstrap'),
  spec: templateOf(bootstrapConfigSpec),
  columns: [age()],
  validate: immutableTemplate('LocalBootstrapConfigTemplate'),
})
export type LocalBootstrapConfigTemplate = ObjectOf<typeof LocalBootstrapConfigTemplate>
