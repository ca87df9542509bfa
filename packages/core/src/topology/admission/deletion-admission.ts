/**
 * Protects the dependents of a Cluster until BeforeClusterDelete allows the deletion: deleting the Cluster with `--cascade=foreground`, or
 * its namespace, makes controllers of Kubernetes delete dependents without calling the hook. Upstream has no such protection.
 */
import { Cluster, ClusterNameLabel, OkToDeleteAnnotation } from '@capstan/api'
import {
  type Admission,
  isDeleting,
  type Kind,
  Namespace,
  orAbsent,
  resourceName,
  type SeparateWebhook,
  StatusError,
} from '@capstan/kube'

/**
 * Users that delete dependents of deleted owners, and objects in namespaces that are being deleted: the service accounts of the garbage
 * collector and of the namespace controller, and the user for both when kube-controller-manager runs without
 * `--use-service-account-credentials`.
 */
const Collectors: readonly string[] = [
  'system:serviceaccount:kube-system:generic-garbage-collector',
  'system:serviceaccount:kube-system:namespace-controller',
  'system:kube-controller-manager',
]

/** Called only for deletions by `Collectors`. `Ignore`: objects can be deleted while no manager of Capstan runs. */
const webhook: SeparateWebhook = {
  name: 'dependents',
  failurePolicy: 'Ignore',
  matchConditions: [{ name: 'collectors', expression: `request.userInfo.username in ${JSON.stringify(Collectors)}` }],
}

/**
 * Rejects deletions of objects of these kinds by `Collectors` while their Cluster has a managed topology, the Cluster or its namespace is
 * being deleted, and BeforeClusterDelete has not allowed the deletion of the Cluster. Deletions by any other user are allowed. The kind
 * Cluster and cluster-scoped kinds are left out.
 */
export const deletionAdmission = (kinds: readonly Kind[]): Admission[] =>
  kinds
    .filter((kind) => kind.scope === 'Namespaced' && resourceName(kind) !== resourceName(Cluster))
    .map((kind) => ({
      kind,
      operations: ['DELETE'],
      webhook,
      async validate({ metadata }, { reader, userInfo }) {
        if (!Collectors.includes(userInfo.username ?? '')) return []
        const { namespace, labels } = metadata
        const name = labels?.[ClusterNameLabel]
        if (name === undefined || namespace === undefined) return []
        const cluster = await orAbsent(reader.get(Cluster, { namespace, name }))
        if (!cluster?.spec.topology || cluster.metadata.annotations?.[OkToDeleteAnnotation] !== undefined) return []
        if (!isDeleting(cluster)) {
          const namespaceObject = await orAbsent(reader.get(Namespace, { name: namespace }))
          if (!namespaceObject || !isDeleting(namespaceObject)) return []
        }
        throw new StatusError(
          'Forbidden',
          `${resourceName(kind)} "${metadata.name}" is forbidden: Cluster ${namespace}/${name} or its namespace is being deleted, and BeforeClusterDelete has not allowed the deletion of the Cluster: see its condition TopologyReconciled`,
        )
      },
    }))
