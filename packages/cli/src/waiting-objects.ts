/**
 * Lists the objects in a management cluster that hooks block. Core and providers use the same annotation to record the hooks that block
 * an object.
 */
import { Cluster, ClusterNameLabel, Machine, ProviderNameLabel, type WaitingHook, waitingHooks } from '@capstan/api'
import {
  apiVersionOf,
  type Client,
  CustomResourceDefinition,
  isReason,
  type Kind,
  type KubeObject,
  resourceName,
  unknownKind,
} from '@capstan/kube'

/** A hook that blocks an object, with the name of the object. */
export interface WaitingRecord extends WaitingHook {
  readonly namespace: string
  /** Name of the object's Cluster; empty when unknown. */
  readonly cluster: string
  readonly kind: string
  readonly name: string
}

export interface WaitingObjects {
  /** Sorted by namespace, Cluster and object; the Cluster itself comes first. */
  readonly waiting: readonly WaitingRecord[]
  /** Number of listed Clusters, including those that do not wait. */
  readonly clusters: number
  /** One sentence for each kind that could not be listed, and one if the CustomResourceDefinitions could not be listed. */
  readonly unread: readonly string[]
}

/**
 * Lists waiting Clusters and Machines, and waiting objects of every kind whose CustomResourceDefinition has the label
 * `cluster.x-k8s.io/provider`. Reads only the metadata of these objects. With `namespace`, omits other namespaces and cluster-scoped objects.
 */
export async function waitingObjects(
  client: Client,
  { namespace, signal }: { namespace?: string | undefined; signal: AbortSignal },
): Promise<WaitingObjects> {
  const unread: string[] = []
  const orUnread = async <T>(description: string, reading: Promise<readonly T[]>): Promise<readonly T[]> => {
    try {
      return await reading
    } catch (err) {
      // The user may lack permissions, and the kind may have been removed in the meantime.
      if (!isReason(err, 'Forbidden', 'NotFound')) throw err
      unread.push(`${description} are not listed: ${err.message}`)
      return []
    }
  }
  const providerDefinitions = client.list(CustomResourceDefinition, { labelSelector: ProviderNameLabel, signal })
  const definitions = await orUnread(
    'Objects of providers',
    providerDefinitions.then(({ items }) => items),
  )
  const kinds = new Map<string, Kind>([Cluster, Machine].map((kind) => [resourceName(kind), kind]))
  for (const definition of definitions) {
    const kind = kindOf(definition)
    if (!kinds.has(resourceName(kind)) && (namespace === undefined || kind.scope === 'Namespaced'))
      kinds.set(resourceName(kind), kind)
  }
  const listed = await Promise.all(
    [...kinds.values()].map(async (kind) => {
      const selection = { ...(namespace === undefined ? {} : { namespace }), metadataOnly: true as const, signal }
      return {
        kind,
        items: await orUnread(
          resourceName(kind),
          client.list(kind, selection).then(({ items }) => items),
        ),
      }
    }),
  )
  const waiting = listed.flatMap(({ kind, items }) => items.flatMap((object) => recordsOf(kind.kind, object)))
  return {
    waiting: waiting.sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1)),
    clusters: listed.find(({ kind }) => kind === Cluster)!.items.length,
    unread: unread.sort(),
  }
}

function recordsOf(kind: string, object: KubeObject): WaitingRecord[] {
  const { namespace = '', name, labels, ownerReferences = [] } = object.metadata
  const owner = ownerReferences.find((reference) => reference.kind === Cluster.kind)
  const cluster = kind === Cluster.kind ? name : (labels?.[ClusterNameLabel] ?? owner?.name ?? '')
  return waitingHooks(object).map((record) => ({ namespace, cluster, kind, name, ...record }))
}

const sortKey = ({ namespace, cluster, kind, name, hook }: WaitingRecord): string =>
  [namespace, cluster, kind === Cluster.kind ? '' : kind, name, hook].join('\n')

/**
 * Returns the kind in the first of these versions that exists: the storage version if it is served, which needs no conversion; the first
 * served version; the first version.
 */
function kindOf({ spec: { group, names, scope, versions } }: CustomResourceDefinition): Kind {
  const served = versions.filter((candidate) => candidate.served)
  const version = (served.find((candidate) => candidate.storage) ?? served[0] ?? versions[0])!.name
  return unknownKind({
    apiVersion: apiVersionOf({ group, version }),
    kind: names.kind,
    plural: names.plural,
    scope: scope as Kind['scope'],
  })
}
