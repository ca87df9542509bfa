/** SampleCluster: the network and the control plane endpoint of a Cluster. Contract: InfraCluster. */
import { Cluster, ManagedByAnnotation } from '@capstan/api'
import { type Controller, controller, watches } from '@capstan/controller'
import { age, column, defineKind, keyOf, keyText, type ObjectOf, s } from '@capstan/kube'
import type { Cloud } from './cloud.ts'
import { byCluster, clusterMatters, endpoint, labels, ofCluster, reconcileWith, templateOf } from './frame.ts'

const spec = s.object({
  controlPlaneEndpoint: endpoint().optional().doc('Endpoint of the API server. Set by the provider, unless you set it.'),
})

export const SampleCluster = defineKind({
  group: 'infrastructure.sample.example.com',
  version: 'v1alpha1',
  kind: 'SampleCluster',
  plural: 'sampleclusters',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'SampleCluster is the infrastructure of one Cluster.',
  labels,
  spec: spec.optional(),
  status: s.object({
    initialization: s.object({ provisioned: s.boolean().optional() }).optional(),
    failureDomains: s
      .list(s.object({ name: s.string({ minLength: 1, maxLength: 256 }), controlPlane: s.boolean().optional() }), {
        maxItems: 100,
      })
      .listMap('name')
      .optional(),
    conditions: s.conditions(),
  }),
  columns: [
    column('Cluster', '.metadata.labels.cluster\\.x-k8s\\.io/cluster-name'),
    column('Provisioned', '.status.initialization.provisioned', { type: 'boolean' }),
    age(),
  ],
})
export type SampleCluster = ObjectOf<typeof SampleCluster>

export const SampleClusterTemplate = defineKind({
  group: 'infrastructure.sample.example.com',
  version: 'v1alpha1',
  kind: 'SampleClusterTemplate',
  plural: 'sampleclustertemplates',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'SampleClusterTemplate is the template from which SampleClusters of a ClusterClass are created.',
  labels,
  spec: templateOf(spec),
  columns: [age()],
})

const clusters = byCluster(SampleCluster)

export const clusterController = (cloud: Cloud): Controller =>
  controller({
    name: 'samplecluster',
    for: SampleCluster,
    watches: [watches(Cluster, ofCluster(clusters), clusterMatters)],
    reconcile: reconcileWith({
      kind: SampleCluster,
      ownerKind: Cluster,
      clusterNameOf: ({ metadata }: Cluster) => metadata.name,
      // Another system manages the infrastructure of this Cluster.
      skip: ({ metadata }) => metadata.annotations?.[ManagedByAnnotation] !== undefined,
      async provision(object) {
        const { host, port, failureDomains } = await cloud.ensureNetwork(keyText(keyOf(object)))
        object.spec = { ...object.spec, controlPlaneEndpoint: object.spec?.controlPlaneEndpoint ?? { host, port } }
        object.status = {
          ...object.status,
          initialization: { provisioned: true },
          failureDomains: failureDomains.map((name) => ({ name, controlPlane: true })),
        }
        return undefined
      },
      remove: (object) => cloud.deleteNetwork(keyText(keyOf(object))),
    }),
  })
