/** SampleMachinePool: a group of equal instances, without a Machine for each. Contract: InfraMachinePool. */
import { Cluster, MachinePool } from '@capstan/api'
import { type Controller, controller, watches, whenChanged } from '@capstan/controller'
import { age, column, defineKind, keyOf, keyText, type ObjectOf, s } from '@capstan/kube'
import type { Cloud } from './cloud.ts'
import { byCluster, clusterMatters, labels, ofCluster, reconcileWith, referenced, templateOf } from './frame.ts'

const spec = s.object({
  providerIDList: s
    .list(s.string({ minLength: 1, maxLength: 512 }), { maxItems: 10000 })
    .atomic()
    .optional()
    .doc('Set by the provider.'),
  size: s.string({ minLength: 1, maxLength: 64 }).optional().doc('Size of each instance.'),
})

export const SampleMachinePool = defineKind({
  group: 'infrastructure.sample.example.com',
  version: 'v1alpha1',
  kind: 'SampleMachinePool',
  plural: 'samplemachinepools',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'SampleMachinePool is the infrastructure of one MachinePool.',
  labels,
  spec: spec.optional(),
  status: s.object({
    ready: s
      .boolean()
      .optional()
      .doc('The same as initialization.provisioned; the core provider of Cluster API v1.14 reads this field.'),
    initialization: s.object({ provisioned: s.boolean().optional() }).optional(),
    replicas: s.int32().optional(),
    conditions: s.conditions(),
  }),
  columns: [
    column('Cluster', '.metadata.labels.cluster\\.x-k8s\\.io/cluster-name'),
    column('Replicas', '.status.replicas', { type: 'integer' }),
    column('Provisioned', '.status.initialization.provisioned', { type: 'boolean' }),
    age(),
  ],
})
export type SampleMachinePool = ObjectOf<typeof SampleMachinePool>

export const SampleMachinePoolTemplate = defineKind({
  group: 'infrastructure.sample.example.com',
  version: 'v1alpha1',
  kind: 'SampleMachinePoolTemplate',
  plural: 'samplemachinepooltemplates',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'SampleMachinePoolTemplate is the template from which SampleMachinePools of a ClusterClass are created.',
  labels,
  spec: templateOf(spec),
  columns: [age()],
})

const pools = byCluster(SampleMachinePool)

export const machinePoolController = (cloud: Cloud): Controller =>
  controller({
    name: 'samplemachinepool',
    for: SampleMachinePool,
    watches: [
      watches(Cluster, ofCluster(pools), clusterMatters),
      watches(
        MachinePool,
        (pool) => referenced(pool, SampleMachinePool, pool.spec.template.spec.infrastructureRef),
        // Core copies the list of provider IDs into the MachinePool: this change needs no reconcile.
        whenChanged(({ spec }: MachinePool) => [spec.replicas, spec.template]),
      ),
    ],
    reconcile: reconcileWith({
      kind: SampleMachinePool,
      ownerKind: MachinePool,
      clusterNameOf: ({ spec }: MachinePool) => spec.clusterName,
      async provision(object, { owner, cluster }) {
        if (!cluster.status?.initialization?.infrastructureProvisioned) return 'the infrastructure of the Cluster'
        if (owner.spec.template.spec.bootstrap.dataSecretName === undefined) return 'bootstrap data of the MachinePool'
        const instances = await cloud.ensureGroup(keyText(keyOf(object)), owner.spec.replicas ?? 1)
        object.spec = { ...object.spec, providerIDList: instances.map(({ providerID }) => providerID) }
        object.status = {
          ...object.status,
          ready: true,
          initialization: { provisioned: true },
          replicas: instances.length,
        }
        return undefined
      },
      remove: (object) => cloud.deleteGroup(keyText(keyOf(object))),
    }),
  })
