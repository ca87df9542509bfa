/** The reader that webhooks use. Upstream: the manager's client, which reads from the cache, v1.14. */
import { ClusterClass } from '@capstan/api'
import type { Informer } from '@capstan/controller'
import { type Client, CustomResourceDefinition, isTrue, type Kind, type KubeObject, type Reader } from '@capstan/kube'

/** Kinds that are read from the informers, with a condition of the cached object. */
const cachedKinds: readonly { readonly kind: Kind; isUsable(object: KubeObject): boolean }[] = [
  // Every write of a Cluster needs its class twice. One that was not reconciled since its last change is about to change again.
  { kind: ClusterClass as Kind, isUsable: (object) => isReconciled(object as ClusterClass) },
  // kube-apiserver converts every change into every served version, whether or not a client reads it.
  { kind: CustomResourceDefinition as Kind, isUsable: () => true },
]

/**
 * Reads ClusterClasses and CustomResourceDefinitions from the informers of the manager, and everything else, and what they do not have,
 * from the API server.
 *
 * @param informers empty while there is no manager
 */
export const webhookReader = (client: Client, informers: () => readonly Informer[]): Reader => ({
  async get(kind, key, options) {
    const cached = cachedKinds.find((one) => isSame(one.kind, kind))
    if (cached) {
      const object = informers()
        .find((one) => isSame(one.kind, kind))
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
