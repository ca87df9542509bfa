/** The reader that webhooks use. Upstream: the manager's client, which reads from the cache, v1.14. */
import { ClusterClass } from '@capstan/api'
import type { Informer } from '@capstan/controller'
import { type Client, CustomResourceDefinition, isTrue, type Kind, type KubeObject, type Reader } from '@capstan/kube'

/** Kinds that are read from the informers, with a condition of the cached object. */
const cachedKinds: readonly { readonly kind: Kind; isUsable(object: KubeObject): boolean }[] = [
  // Every write of a Cluster needs its class twice. The status of a class that was not reconciled since its last change is outdated.
  { kind: ClusterClass as Kind, isUsable: (object) => isReconciled(object as ClusterClass) },
  // Conversion needs definitions, and kube-apiserver converts every change into every served version.
  { kind: CustomResourceDefinition as Kind, isUsable: () => true },
]

/**
 * Creates a reader that reads ClusterClasses and CustomResourceDefinitions from the informers of the manager. Objects that are not in them,
 * and objects of other kinds, are read from the API server.
 *
 * @param informers empty until the manager is created
 */
export const webhookReader = (client: Client, informers: () => readonly Informer[]): Reader => ({
  async get(kind, key, options) {
    const cached = cachedKinds.find((entry) => isSame(entry.kind, kind))
    if (cached) {
      const object = informers()
        .find((informer) => isSame(informer.kind, kind))
        ?.get(key)
      if (object && cached.isUsable(object)) return object as never
    }
    return client.get(kind, key, options)
  },
  list: (kind, options) => client.list(kind, options),
})

const isSame = (a: Kind, b: Kind): boolean => a.group === b.group && a.kind === b.kind && a.version === b.version

const isReconciled = (clusterClass: ClusterClass): boolean =>
  isTrue(clusterClass, 'VariablesReady') && clusterClass.status?.observedGeneration === clusterClass.metadata.generation
