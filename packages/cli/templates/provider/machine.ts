/** SampleMachine: one instance in the cloud. Contract: InfraMachine. */
import { Cluster, Machine } from '@capstan/api'
import { type Controller, controller, watches, whenChanged } from '@capstan/controller'
import { age, column, defineKind, keyOf, keyText, type ObjectOf, s, Secret } from '@capstan/kube'
import type { Cloud } from './cloud.ts'
import { byCluster, clusterMatters, labels, ofCluster, reconcileWith, referenced, templateOf } from './frame.ts'

const spec = s.object({
  providerID: s.string({ minLength: 1, maxLength: 512 }).optional().doc('Set by the provider.'),
  size: s.string({ minLength: 1, maxLength: 64 }).optional().doc('Size of the instance.'),
})

export const SampleMachine = defineKind({
  group: 'infrastructure.sample.example.com',
  version: 'v1alpha1',
  kind: 'SampleMachine',
  plural: 'samplemachines',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'SampleMachine is the infrastructure of one Machine.',
  labels,
  spec: spec.optional(),
  status: s.object({
    initialization: s.object({ provisioned: s.boolean().optional() }).optional(),
    addresses: s
      .list(s.object({ type: s.string(), address: s.string() }), { maxItems: 16 })
      .atomic()
      .optional(),
    failureDomain: s.string({ minLength: 1, maxLength: 256 }).optional(),
    conditions: s.conditions(),
  }),
  columns: [
    column('Cluster', '.metadata.labels.cluster\\.x-k8s\\.io/cluster-name'),
    column('Provider ID', '.spec.providerID'),
    column('Provisioned', '.status.initialization.provisioned', { type: 'boolean' }),
    age(),
  ],
})
export type SampleMachine = ObjectOf<typeof SampleMachine>

export const SampleMachineTemplate = defineKind({
  group: 'infrastructure.sample.example.com',
  version: 'v1alpha1',
  kind: 'SampleMachineTemplate',
  plural: 'samplemachinetemplates',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'SampleMachineTemplate is the template from which SampleMachines are created.',
  labels,
  spec: templateOf(spec),
  columns: [age()],
})

const machines = byCluster(SampleMachine)

export const machineController = (cloud: Cloud): Controller =>
  controller({
    name: 'samplemachine',
    for: SampleMachine,
    watches: [
      watches(Cluster, ofCluster(machines), clusterMatters),
      watches(
        Machine,
        (machine) => referenced(machine, SampleMachine, machine.spec.infrastructureRef),
        whenChanged(({ spec }: Machine) => [spec]),
      ),
    ],
    reconcile: reconcileWith({
      kind: SampleMachine,
      ownerKind: Machine,
      clusterNameOf: ({ spec }: Machine) => spec.clusterName,
      // Returns the precondition that is missing, or undefined when the machine is provisioned.
      async provision(object, { owner, cluster }, { client, signal }) {
        if (object.status?.initialization?.provisioned) return undefined
        if (!cluster.status?.initialization?.infrastructureProvisioned) return 'the infrastructure of the Cluster'
        const { dataSecretName } = owner.spec.bootstrap
        if (dataSecretName === undefined) return 'bootstrap data of the Machine'
        const secret = await client.get(Secret, { namespace: object.metadata.namespace!, name: dataSecretName }, { signal })
        const data = Buffer.from(secret.data?.value ?? '', 'base64').toString('utf8')
        const { providerID, address } = await cloud.ensureInstance(keyText(keyOf(object)), data)
        object.spec = { ...object.spec, providerID }
        object.status = {
          ...object.status,
          initialization: { provisioned: true },
          addresses: [{ type: 'InternalDNS', address }],
          ...(owner.spec.failureDomain === undefined ? {} : { failureDomain: owner.spec.failureDomain }),
        }
        return undefined
      },
      remove: (object) => cloud.deleteInstance(keyText(keyOf(object))),
    }),
  })
