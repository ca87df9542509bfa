/** A management cluster in this process with an extension behind a real socket. Records the times of events, for benches of hooks. */
import { Cluster, ExtensionConfig, waitingHooks } from '@capstan/api'
import { type CallObserver, type Extension, extensionServer, listen } from '@capstan/extension'
import {
  type Client,
  getCondition,
  type Kind,
  type KubeObject,
  silent,
  systemClock as clock,
  systemRandom as random,
} from '@capstan/kube'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'
import { createManagementCluster, memoryStores } from '@capstan/lab'
import { LocalCluster, LocalControlPlane } from '@capstan/local'
import { createFrom } from '@capstan/testing'
import { now } from './figure.ts'

export interface HooksManagement {
  readonly client: Client
  /**
   * Times of events, by name: `discovered` (the extension), and for a Cluster `c`: `Available c`, `gone c` (deleted), `waits for HOOK c`,
   * `infrastructure c` (its LocalCluster exists) and `control plane c v1.36.0` (the spec of its LocalControlPlane has this version). Benches
   * record additional events.
   */
  readonly moments: EventTimes
  close(): Promise<void>
}

/** Times at which events occurred first, in milliseconds of `now()`. */
export class EventTimes {
  readonly #known = new Map<string, PromiseWithResolvers<number>>()

  record(event: string): void {
    this.#moment(event).resolve(now())
  }

  /** Waits for an event and resolves with its time. */
  of(event: string): Promise<number> {
    return this.#moment(event).promise
  }

  #moment(event: string): PromiseWithResolvers<number> {
    const moment = this.#known.get(event) ?? Promise.withResolvers<number>()
    this.#known.set(event, moment)
    return moment
  }
}

interface HooksManagementOptions {
  readonly moments?: EventTimes
  readonly onCall?: CallObserver
  /** `namespaceSelector` of the ExtensionConfig. Default: every namespace. */
  readonly namespaceSelector?: ExtensionConfig['spec']['namespaceSelector']
}

/**
 * Starts a management cluster and the server of the extension; resolves when the extension is discovered. Clusters must use the
 * ClusterClass `bench`.
 */
export async function startHooksManagement(
  extension: Extension,
  { moments = new EventTimes(), onCall, namespaceSelector = {} }: HooksManagementOptions = {},
): Promise<HooksManagement> {
  const authority = await makeAuthority(clock, { commonName: 'bench' })
  const serving = await issueCertificate(authority, clock, {
    commonName: extension.name,
    usages: ['server'],
    ipAddresses: ['127.0.0.1'],
  })
  const server = await listen(extensionServer(extension), serving)
  const management = await createManagementCluster({
    stores: memoryStores(),
    clock,
    random,
    log: silent,
    endpoint: { host: '127.0.0.1', port: 6443 },
    ...(onCall ? { onCall } : {}),
  })
  const { client } = management
  const stop = new AbortController()
  const follow = async <T extends KubeObject>(
    kind: Kind<T>,
    eventNamesOf: (object: T, isGone: boolean) => readonly (string | false)[],
  ) => {
    const { metadata } = await client.list(kind)
    const events = await client.watch(kind, { resourceVersion: metadata.resourceVersion, signal: stop.signal })
    const read = async () => {
      for await (const { type, object } of events) {
        for (const event of eventNamesOf(object, type === 'DELETED')) if (event !== false) moments.record(event)
      }
    }
    // Ends when `close` aborts the watch.
    void read().catch(() => {})
  }
  const isTrue = (object: Parameters<typeof getCondition>[0], type: string) => getCondition(object, type)?.status === 'True'
  await follow(Cluster, (cluster, isGone) => {
    const { name } = cluster.metadata
    const waits = waitingHooks(cluster).map(({ hook }) => `waits for ${hook} ${name}`)
    return [isGone && `gone ${name}`, isTrue(cluster, 'Available') && `Available ${name}`, ...waits]
  })
  await follow(LocalCluster, ({ metadata }) => [`infrastructure ${metadata.name}`])
  await follow(LocalControlPlane, ({ metadata, spec }) => [
    `control plane ${metadata.name.replace(/-control-plane$/, '')} ${spec.version}`,
  ])
  await follow(ExtensionConfig, (config) => [isTrue(config, 'Discovered') && 'discovered'])

  await createFrom(client, new URL('clusterclass.yaml', import.meta.url))
  const caBundle = Buffer.from(authority.certificate).toString('base64')
  await client.create(ExtensionConfig, {
    metadata: { name: extension.name },
    spec: { clientConfig: { url: server.url, caBundle }, namespaceSelector },
  })
  await moments.of('discovered')
  return {
    client,
    moments,
    async close() {
      stop.abort()
      await management.close()
      await server.close(0)
    },
  }
}

/** Returns a Cluster with one control plane Machine and, by default, one worker. */
export const aHookedCluster = (name: string, workers = 1) => ({
  metadata: { name, namespace: 'default' },
  spec: {
    topology: {
      classRef: { name: 'bench' },
      version: 'v1.36.0',
      controlPlane: { replicas: 1 },
      ...(workers === 0 ? {} : { workers: { machineDeployments: [{ class: 'worker', name: 'md', replicas: workers }] } }),
    },
  },
})
