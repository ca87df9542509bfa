import type { ObjectOf } from '@capstan/kube'
import { age, column, conditionTypes, defineKind, s } from '@capstan/kube'
import { contractLabels, duration, endpoint, failure, failureStatus, failureDomains, templateOf } from './shapes.ts'
import { immutableTemplate } from './template.ts'

const spec = s.object({
  controlPlaneEndpoint: endpoint()
    .optional()
    .doc(
      'Endpoint of the control plane; set it to use your own load balancer. If you do not set it, the provider copies the endpoint of the Cluster; if the Cluster has none and withoutEndpoint is not true, the provider sets its own.',
    ),
  withoutEndpoint: s
    .boolean()
    .optional()
    .doc('Whether the user or the control plane supplies the endpoint, rather than this provider.'),
  failureDomains: failureDomains()
    .optional()
    .doc('Simulated failure domains. Default: a, b and c, all suitable for control plane machines.'),
  simulated: s
    .object({
      provisioningDelay: duration().optional().doc('Duration of provisioning. Default 0s.'),
      deletionDelay: duration().optional().doc('Duration of the deletion. Default 0s.'),
      failure: failure('provisioning', 'deletion'),
    })
    .optional()
    .doc('How the simulated infrastructure behaves.'),
})

/** A LocalCluster is the infrastructure of one Cluster: the endpoint of the workload API server, and failure domains. */
export const LocalCluster = defineKind({
  group: 'infrastructure.capstan.dev',
  version: 'v1alpha1',
  kind: 'LocalCluster',
  plural: 'localclusters',
  shortNames: ['lc'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'LocalCluster is the infrastructure of one Cluster, simulated by the local provider.',
  labels: contractLabels('infrastructure'),
  spec: spec.optional(),
  status: s.object({
    initialization: s
      .object({ provisioned: s.boolean().optional().doc('True once the infrastructure is provisioned; never false again.') })
      .optional()
      .doc('Milestones of provisioning that Cluster API waits for.'),
    failureDomains: failureDomains().optional().doc('Failure domains in which machines can be placed.'),
    timeline: s
      .object({ provisioningStarted: s.timestamp().optional().doc('When provisioning began.') })
      .optional()
      .doc('Times of past steps. Simulated delays are measured from these times, also after a restart of the provider.'),
    ...failureStatus,
    conditions: s.conditions(),
  }),
  columns: [
    column('Cluster', '.metadata.labels.cluster\\.x-k8s\\.io/cluster-name'),
    column('Ready', '.status.conditions[?(@.type=="Ready")].status'),
    column('Provisioned', '.status.initialization.provisioned', { type: 'boolean' }),
    column('Host', '.spec.controlPlaneEndpoint.host', { priority: 10 }),
    column('Port', '.spec.controlPlaneEndpoint.port', { type: 'integer', priority: 10 }),
    column('Paused', '.status.conditions[?(@.type=="Paused")].status', { priority: 10 }),
    age(),
  ],
})
export type LocalCluster = ObjectOf<typeof LocalCluster>

export const LocalClusterConditions = conditionTypes({
  /** Mirrored by core as InfrastructureReady of the Cluster. */
  Ready: ['Ready', 'Provisioning', 'ProvisioningFailed', 'Deleting'],
  Deleting: ['NotDeleting', 'WaitingForMachineDeletion', 'Deleting', 'DeletionFailed'],
  Paused: ['Paused', 'NotPaused'],
})

/** Finalizer of a LocalCluster until its workload API server is removed. */
export const LocalClusterFinalizer = 'localcluster.infrastructure.capstan.dev'

export const LocalClusterTemplate = defineKind({
  group: 'infrastructure.capstan.dev',
  version: 'v1alpha1',
  kind: 'LocalClusterTemplate',
  plural: 'localclustertemplates',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'LocalClusterTemplate is the template from which the LocalClusters of Clusters with a ClusterClass are created.',
  labels: contractLabels('infrastructure'),
  spec: templateOf(spec),
  columns: [age()],
  validate: immutableTemplate('LocalClusterTemplate'),
})
export type LocalClusterTemplate = ObjectOf<typeof LocalClusterTemplate>
