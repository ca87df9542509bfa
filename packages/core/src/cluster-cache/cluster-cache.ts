/** Connections to workload clusters, one per cluster, shared by every controller of the process. */
import { Cluster } from '@capstan/api'
import { type Cache, type Controller, orLogged, proceed, type Source, watches, whenChanged } from '@capstan/controller'
import { type Client, type KubeObject, keyText, type Logger, type Node, type ObjectKey, parseKey, Secret } from '@capstan/kube'
import {
  type AccessorEvent,
  type AccessorOptions,
  ClusterAccessor,
  type Health,
  MissingKubeconfig,
  Timing,
  type WorkloadCluster,
  failsForLonger,
} from './accessor.ts'

export type ClusterCacheEvent =
  /** The connection was opened or closed; or, for sources with `unreachableAfter`, the cluster became unreachable or reachable again. */
  | { readonly kind: 'connected' | 'disconnected' | 'unreachable' | 'reachable'; readonly cluster: ObjectKey }
  /** A Node of the cluster was added, changed or deleted. For a deleted Node, `node` is its last state. */
  | { readonly kind: 'node'; readonly cluster: ObjectKey; readonly node: Node; readonly previous: Node | undefined }

export interface SourceOptions {
  /** Maps an event to keys. */
  readonly map: (event: ClusterCacheEvent, cache: Cache) => readonly ObjectKey[]
  /**
   * Also reports `unreachable` once, when probes have failed for this many milliseconds since the last success, and `reachable` when the
   * cluster responds again. A cluster to which this process has never connected is unreachable when `consecutiveFailures` of its health
   * reaches five (`Timing.failuresToDisconnect`). By default, reports neither.
   */
  readonly unreachableAfter?: number
}

export interface ClusterCache {
  /** Returns the cluster's connection; `undefined` while the process is not connected to the cluster. */
  connection(cluster: ObjectKey): WorkloadCluster | undefined
  health(cluster: ObjectKey): Health
  /** Makes a controller source from the events of all clusters. */
  source(options: SourceOptions): Source
  /** Connects to Clusters with provisioned infrastructure. Run it in the same manager as the controllers that use the cache. */
  readonly controller: Controller<Cluster>
}

export type ClusterCacheOptions = Omit<AccessorOptions, 'probe'> & {
  /** Replaces the default probe, for clusters in this process that can be probed more cheaply. */
  readonly probe?: AccessorOptions['probe']
}

interface Listener extends SourceOptions {
  readonly enqueue: (key: ObjectKey) => void
  readonly cache: Cache
  readonly log: Logger
  /** Clusters reported as unreachable to this source. */
  readonly unreachable: Set<string>
}

export function createClusterCache(options: ClusterCacheOptions): ClusterCache {
  const accessorOptions: AccessorOptions = { probe: probeRoot, ...options }
  const accessors = new Map<string, ClusterAccessor>()
  const listeners = new Set<Listener>()

  function notify(cluster: ObjectKey, event: AccessorEvent): void {
    const object = { Cluster: keyText(cluster), ...(event.kind === 'node' ? { Node: event.node.metadata.name } : {}) }
    for (const listener of listeners) {
      const { log, map, cache } = listener
      for (const clusterEvent of eventsFor(listener, cluster, event)) {
        for (const key of orLogged(log, object, () => map(clusterEvent, cache), [])) listener.enqueue(key)
      }
    }
  }

  function eventsFor(listener: Listener, cluster: ObjectKey, event: AccessorEvent): ClusterCacheEvent[] {
    const name = keyText(cluster)
    switch (event.kind) {
      case 'node':
        return [{ ...event, cluster }]
      case 'connected':
      case 'disconnected':
        return [{ kind: event.kind, cluster }]
      case 'probe-failed':
        if (listener.unreachable.has(name) || !isUnreachable(cluster, listener.unreachableAfter)) return []
        listener.unreachable.add(name)
        return [{ kind: 'unreachable', cluster }]
      case 'probe-recovered':
        return listener.unreachable.delete(name) ? [{ kind: 'reachable', cluster }] : []
    }
  }

  function isUnreachable(cluster: ObjectKey, after: number | undefined): boolean {
    if (after === undefined) return false
    const current = health(cluster)
    if (current.lastProbeSuccess === undefined) return current.consecutiveFailures >= Timing.failuresToDisconnect
    return failsForLonger(current, after, { now: options.clock.now() })
  }

  const health = (cluster: ObjectKey): Health => accessors.get(keyText(cluster))?.health ?? neverProbed

  function accessorOf(cluster: ObjectKey): ClusterAccessor {
    const name = keyText(cluster)
    const existing = accessors.get(name)
    if (existing) return existing
    const accessor = new ClusterAccessor(cluster, accessorOptions, (event) => notify(cluster, event))
    accessors.set(name, accessor)
    return accessor
  }

  function drop(cluster: ObjectKey): void {
    accessors.get(keyText(cluster))?.close()
    accessors.delete(keyText(cluster))
    for (const { unreachable } of listeners) unreachable.delete(keyText(cluster))
  }

  return {
    health,
    connection: (cluster) => accessors.get(keyText(cluster))?.connection,
    source: ({ map, unreachableAfter }) => ({
      start(enqueue, { cache, signal, log }) {
        const listener: Listener = {
          map,
          enqueue,
          cache,
          log,
          unreachable: new Set(),
          ...(unreachableAfter === undefined ? {} : { unreachableAfter }),
        }
        listeners.add(listener)
        signal.addEventListener('abort', () => listeners.delete(listener), { once: true })
      },
    }),
    controller: {
      name: 'clustercache',
      for: Cluster,
      when: provisioningMatters,
      // Control plane providers and users may create kubeconfig Secrets without the label that the manager's event filter requires. In
      // upstream, a change of these Secrets triggers no reconcile.
      watches: [
        { ...watches(Secret, clusterOfKubeconfig, ({ object, previous }) => isKubeconfig(object ?? previous)), filter: 'keys' },
      ],
      sources: [
        {
          start: (_, { signal }) =>
            signal.addEventListener('abort', () => [...accessors.keys()].map(parseKey).forEach(drop), { once: true }),
        },
      ],
      async reconcile(key, { cache }) {
        const cluster = cache.peek(Cluster, key)
        if (cluster) accessorOf(key).setKubeconfig(kubeconfigOf(cluster, cache))
        else drop(key)
        return proceed()
      },
      // Another process, which holds the shard of this Cluster, reconciles the Cluster. This process needs no connection to it.
      observe(key) {
        drop(key)
        return Promise.resolve(proceed())
      },
    },
  }
}

const neverProbed: Health = { lastProbe: undefined, lastProbeSuccess: undefined, consecutiveFailures: 0 }

const KubeconfigSuffix = '-kubeconfig'

const isProvisioned = ({ status }: Cluster): boolean => status?.initialization?.infrastructureProvisioned === true

/** Accepts events in which a Cluster appears or disappears, or its `infrastructureProvisioned` changes. */
const provisioningMatters = whenChanged(isProvisioned)

/**
 * Returns the kubeconfig of the cluster: `undefined` before its infrastructure is provisioned, `MissingKubeconfig` when the kubeconfig Secret
 * does not exist or has no `value`.
 */
function kubeconfigOf(cluster: Cluster, cache: Cache): string | undefined {
  if (!isProvisioned(cluster)) return undefined
  const { metadata } = cluster
  const secret = cache.peek(Secret, { namespace: metadata.namespace!, name: metadata.name + KubeconfigSuffix })
  const value = secret?.data?.['value']
  return value ? decodeBase64(value) : MissingKubeconfig
}

const decodeBase64 = (text: string): string =>
  new TextDecoder().decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)))

const isKubeconfig = (object: KubeObject | undefined): boolean => object?.metadata.name.endsWith(KubeconfigSuffix) ?? false

const clusterOfKubeconfig = ({ metadata }: KubeObject): ObjectKey[] => [
  { namespace: metadata.namespace!, name: metadata.name.slice(0, -KubeconfigSuffix.length) },
]

/** Probes a cluster by a request for `/`. As upstream, every error response, even 403, counts as a failed probe. */
async function probeRoot({ transport }: Client, signal: AbortSignal): Promise<void> {
  await transport.send({ verb: 'get', group: '', version: '', plural: '' }, signal)
}
