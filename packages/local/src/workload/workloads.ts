/**
 * Runs the simulated workload clusters: one embedded API server per cluster. An API server runs as long as its cluster has a running control
 * plane machine or a hosted control plane. Each cluster has its own store, whose objects remain while the API server is stopped.
 */
import { createHandler, type Endpoint, type HttpHandler, type Store } from '@capstan/apiserver'
import { type ApiServer, createApiServer } from '@capstan/kubernetes-kinds'
import { compareVersions } from '@capstan/api'
import type { Client, Clock, Logger, ObjectKey, Random, Transport } from '@capstan/kube'
import { createClient, keyText, StatusError } from '@capstan/kube'
import type { CertifiedKey } from '@capstan/kube/node'
import { ensureKubeadmObjects } from './basics.ts'
import { serverNameOf } from './server-name.ts'
import { servingCertificate } from './serving-certificate.ts'

export interface WorkloadsOptions {
  /** Opens the store with this name, or creates it. */
  readonly openStore: (name: string) => Promise<Store>
  /** Deletes a closed store with its data. Default: data of removed clusters are kept. */
  readonly removeStore?: (name: string) => Promise<void>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Whether evicted and deleted Pods exist until their kubelet has stopped them. Default: false, because kubelets are only simulated. */
  readonly gracefulDeletion?: boolean
}

/** Properties of a control plane machine, or of a hosted control plane, when it joins its cluster. */
export interface Boot {
  /** The certificate authority of the cluster, which signs the serving certificate and verifies client certificates. */
  readonly authority: CertifiedKey
  /** Host of the control plane endpoint: an additional name of the serving certificate. */
  readonly endpointHost: string | undefined
  /** Version of the API server on this machine. */
  readonly kubernetesVersion: string | undefined
}

/** The API servers of the simulated workload clusters of this process. */
export interface Workloads {
  /**
   * Adds a control plane machine to a cluster, and returns a client of the cluster's API server. A hosted control plane counts as one
   * machine. The first machine starts the API server. For a later machine, only the version in `boot` is used. May be called repeatedly.
   */
  join(cluster: ObjectKey, machine: string, boot: Boot): Promise<Client>
  /**
   * Replaces the certificate authority of a running API server: later connections use the new authority for the serving certificate and for
   * client certificates.
   */
  trust(cluster: ObjectKey, authority: CertifiedKey): void
  /** Removes a machine. With the last machine, the API server stops. Its data are kept. */
  leave(cluster: ObjectKey, machine: string): Promise<void>
  /** Stops the API server of a cluster, and deletes the store of the cluster with `removeStore`. */
  remove(cluster: ObjectKey): Promise<void>
  /** Returns a client of a running API server; with `machine`, only if that machine is one of its machines. */
  clientFor(cluster: ObjectKey, machine?: string): Client | undefined
  /** Returns an in-process transport to a running API server by the `tls-server-name` of its kubeconfig. */
  transportFor(serverName: string): Transport | undefined
  /** Resolves when the API server runs. Clients may have the kubeconfig before it runs. */
  whenStarted(serverName: string): Promise<Transport>
  /** Returns the endpoint for a listener that serves the running API server with this name. */
  endpointFor(serverName: string): Endpoint | undefined
  /** Calls `listener` whenever an API server has started. Returns a function that removes the listener. */
  onStarted(listener: (cluster: ObjectKey) => void): () => void
  /** Stops all API servers. Their data are kept. */
  close(): Promise<void>
}

interface RunningServer {
  readonly cluster: ObjectKey
  /** Versions of the API server by control plane machine. */
  readonly machines: Map<string, string | undefined>
  /** The lowest version in `machines`, which `/version` reports. */
  version: string | undefined
  handler: HttpHandler
  readonly server: ApiServer
  readonly client: Client
  readonly transport: Transport
  boot: Boot
  /** Replaced when the certificate authority changes, because a listener caches the certificate of an endpoint. */
  endpoint: Endpoint
  stopped: boolean
}

export function createWorkloads(options: WorkloadsOptions): Workloads {
  const { openStore, removeStore, clock, log, gracefulDeletion = false } = options
  /**
   * Running API servers by server name. Each accepts only client certificates of its own authority, and tokens of its service
   * accounts.
   */
  const servers = new Map<string, RunningServer>()
  const startWaiters = new Map<string, { promise: Promise<Transport>; resolve: (transport: Transport) => void }>()
  const listeners = new Set<(cluster: ObjectKey) => void>()
  /** The last queued start or stop of each API server, by server name. The starts and stops of one server run one after the other. */
  const turns = new Map<string, Promise<unknown>>()

  function inTurn<T>(name: string, act: () => Promise<T>): Promise<T> {
    const turn = (turns.get(name) ?? Promise.resolve()).then(act, act)
    turns.set(name, turn)
    const clear = () => {
      if (turns.get(name) === turn) turns.delete(name)
    }
    turn.then(clear, clear)
    return turn
  }

  async function start(cluster: ObjectKey, boot: Boot): Promise<RunningServer> {
    const store = await openStore(storeName(cluster))
    const server = createApiServer({ store, clock, random: options.random, log, gracefulDeletion })
    try {
      await server.ready
      const client = createClient(server.transport({ agent: 'kubelet' }))
      await ensureKubeadmObjects(client, cluster.name, boot.kubernetesVersion)
      // Acts as the user of the kubeconfig, and fails once the server has stopped.
      const transport = whileRunning(server.transport({ name: 'kubernetes-admin', agent: 'capstan' }), () => !running.stopped)
      const running: RunningServer = {
        cluster,
        machines: new Map(),
        version: boot.kubernetesVersion,
        handler: handlerOf(server, boot.kubernetesVersion),
        server,
        client,
        transport,
        boot,
        endpoint: endpointOf(() => running, boot),
        stopped: false,
      }
      return running
    } catch (err) {
      await server.close()
      throw err
    }
  }

  const endpointOf = (running: () => RunningServer, boot: Boot): Endpoint => ({
    // A new version changes the handler, but not the endpoint.
    handler: (request, identity) => running().handler(request, identity),
    authenticate: (token) => running().server.authenticate(token),
    clientCA: boot.authority.certificate,
    // Made at the first connection, so that unused API servers need no key.
    serving: () => servingCertificate(running().cluster, boot, clock),
  })

  const handlerOf = ({ engine, issuer }: ApiServer, version: string | undefined): HttpHandler =>
    createHandler({ engine, issuer, clock, log, ...(version === undefined ? {} : { version }) })

  /** Updates the version after machines joined or left. */
  function updateVersion(running: RunningServer): void {
    const version = lowestVersion([...running.machines.values()])
    if (version === running.version) return
    running.version = version
    running.handler = handlerOf(running.server, version)
  }

  async function stop(running: RunningServer): Promise<void> {
    running.stopped = true
    servers.delete(serverNameOf(running.cluster))
    await running.server.close()
    log.info('Workload API server stopped', { Cluster: keyText(running.cluster) })
  }

  return {
    join(cluster, machine, boot) {
      const name = serverNameOf(cluster)
      return inTurn(name, async () => {
        const existing = servers.get(name)
        const running = existing ?? (await start(cluster, boot))
        running.machines.set(machine, boot.kubernetesVersion)
        updateVersion(running)
        if (!existing) {
          servers.set(name, running)
          log.info('Workload API server ready', { Cluster: keyText(cluster), serverName: name })
          startWaiters.get(name)?.resolve(running.transport)
          startWaiters.delete(name)
          for (const listener of listeners) listener(cluster)
        }
        return running.client
      })
    },
    trust(cluster, authority) {
      const running = servers.get(serverNameOf(cluster))
      if (!running || running.boot.authority.certificate === authority.certificate) return
      running.boot = { ...running.boot, authority }
      running.endpoint = endpointOf(() => running, running.boot)
      log.info('Workload API server uses another certificate authority', { Cluster: keyText(cluster) })
    },
    leave(cluster, machine) {
      const name = serverNameOf(cluster)
      return inTurn(name, async () => {
        const running = servers.get(name)
        if (!running?.machines.delete(machine)) return
        if (running.machines.size === 0) await stop(running)
        else updateVersion(running)
      })
    },
    remove(cluster) {
      const name = serverNameOf(cluster)
      return inTurn(name, async () => {
        const running = servers.get(name)
        if (running) await stop(running)
        await removeStore?.(storeName(cluster))
      })
    },
    clientFor(cluster, machine) {
      const running = servers.get(serverNameOf(cluster))
      return machine === undefined || running?.machines.has(machine) ? running?.client : undefined
    },
    transportFor: (serverName) => servers.get(serverName)?.transport,
    whenStarted(serverName) {
      const running = servers.get(serverName)
      if (running) return Promise.resolve(running.transport)
      const waiter = startWaiters.get(serverName) ?? Promise.withResolvers<Transport>()
      startWaiters.set(serverName, waiter)
      return waiter.promise
    },
    endpointFor: (serverName) => servers.get(serverName)?.endpoint,
    onStarted(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async close() {
      await Promise.all([...servers.values()].map((running) => inTurn(serverNameOf(running.cluster), () => stop(running))))
    },
  }
}

/** Returns the lowest known version; `undefined` when none is known. */
const lowestVersion = (versions: readonly (string | undefined)[]): string | undefined =>
  versions.filter((version) => version !== undefined).sort(compareVersions)[0]

/** Wraps a transport so that requests to a stopped server are rejected. Otherwise such a server might respond from its memory. */
const whileRunning = (transport: Transport, isRunning: () => boolean): Transport => {
  const check = () => {
    if (!isRunning()) throw new StatusError('ServiceUnavailable', 'the API server of the workload cluster is not running')
  }
  return {
    async send(request, signal) {
      check()
      return transport.send(request, signal)
    },
    async watch(request, signal) {
      check()
      return transport.watch(request, signal)
    },
    close: () => transport.close(),
  }
}

/** Returns the store name of a cluster. The name is unique, because namespaces contain no underscore. */
export const storeName = ({ namespace = '', name }: ObjectKey): string => `workload_${namespace}_${name}`
