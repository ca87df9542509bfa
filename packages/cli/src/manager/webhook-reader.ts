/** The reader that webhooks use. Upstream (v1.14): the manager's client, which reads from the cache. */
import { ClusterClass } from '@capstan/api'
import type { Informer } from '@capstan/controller'
import { type Client, CustomResourceDefinition, isTrue, type Kind, type KubeObject, type Reader } from '@capstan/kube'

/** Kinds that are read from the informers, and whether a cached object may be used. */
const cachedKinds: readonly { readonly kind: Kind; isUsable(object: KubeObject): boolean }[] = [
  // Admission of a Cluster with a topology reads its ClusterClass, for defaults and for validation. A ClusterClass is usable only if its
  // status, which has the variables, is current.
  { kind: ClusterClass as Kind, isUsable: (object) => isReconciled(object as ClusterClass) },
  // Conversion reads CRDs, and kube-apiserver converts every change into every served version.
  { kind: CustomResourceDefinition as Kind, isUsable: () => true },
]

/**
 * Creates a reader whose `get` returns ClusterClasses and CustomResourceDefinitions from the informers of the manager. It reads from the
 * API server: lists, objects of other kinds, objects that are not cached, and ClusterClasses whose cached status is outdated or whose
 * variables are not ready.
 *
 * @param informers returns the manager's informers; empty until the manager is created
 */
export const webhookReader = (client: Client, informers: () => readonly Informer[]): Reader => ({
  async get(kind, key, options) {
    const cachedKind = cachedKinds.find((candidate) => isSame(candidate.kind, kind))
    if (cachedKind) {
      const object = informers()
        .find((informer) => isSame(informer.kind, kind))
        ?.get(key)
      if (object && cachedKind.isUsable(object)) return object as never
    }
    return client.get(kind, key, options)
  },
  list: (kind, options) => client.list(kind, options),
})

const isSame = (a: Kind, b: Kind): boolean => a.group === b.group && a.kind === b.kind && a.version === b.version

const isReconciled = (clusterClass: ClusterClass): boolean =>
  isTrue(clusterClass, 'VariablesReady') && clusterClass.status?.observedGeneration === clusterClass.metadata.generation
