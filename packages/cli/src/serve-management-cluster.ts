/** Serves a management cluster and its simulated workload clusters over HTTPS on one port. */
import { networkInterfaces } from 'node:os'
import type { Endpoint, HttpHandler } from '@capstan/apiserver'
import { authenticator, createHandler, storeCheck } from '@capstan/apiserver'
import type { Hook } from '@capstan/api'
import type { Clock, Logger, Random } from '@capstan/kube'
import { seconds, StatusError } from '@capstan/kube'
import type { CallObserver, HookTransport } from '@capstan/extension'
import type { HookCall, ManagementCluster, Stores } from '@capstan/lab'
import { createManagementCluster } from '@capstan/lab'
import { openAccess, writeKubeconfig } from './access.ts'
import { advertisedAddress } from './advertised-address.ts'
import { listenOnSamePort } from './same-port.ts'

export interface ServeManagementClusterOptions {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly stores: Stores
  /** Folder of the certificates. Default: certificates are kept in memory. */
  readonly pki: string | undefined
  /** File that stores the port, so that kubeconfigs of clusters stay valid after restarts. Default: the port is not stored. */
  readonly portFile: string | undefined
  /** Port requested by the user. Default: the port that `portFile` stores, otherwise 6443. 0 selects a free port. */
  readonly port: number | undefined
  /** File to write the administrator's kubeconfig to. */
  readonly kubeconfig: string
  /**
   * Called with each result of a hook call, including failures. Not called if the hook has no handlers, or if its handlers cannot be
   * determined.
   */
  readonly onHookCall?: (call: HookCall) => void
  /** Transport for hook calls; default: HTTPS. */
  readonly hookTransport?: HookTransport
  /** Called after each call of an extension, including discovery; not after an aborted call. */
  readonly onCall?: CallObserver
  /** Hooks that providers outside of Capstan declare. ExtensionConfigs may register handlers for them. */
  readonly providerHooks?: readonly Hook[]
}

export interface ServedManagementCluster {
  readonly management: ManagementCluster
  readonly url: string
  close(): Promise<void>
}

/** Address to listen on: loopback only, because authorization is not configured. */
export const host = '127.0.0.1'
const UsualPort = 6443

/** Time limit for requests that are open when the servers stop. */
const GraceOfRequests = seconds(1)

/** Starts the servers. @throws Error naming the port when it is in use */
export async function serveManagementCluster(options: ServeManagementClusterOptions): Promise<ServedManagementCluster> {
  const { clock, random, log, stores } = options
  const access = await openAccess(clock, options.pki, {
    ip: ['127.0.0.1', '::1'],
    dns: ['localhost', 'kubernetes', 'kubernetes.default.svc'],
  })
  let management: ManagementCluster | undefined
  const authenticateByCertificate = authenticator()
  // The listener is started first, because the kubeconfigs of workload clusters contain its port.
  let handler: HttpHandler = () => Promise.reject(new StatusError('ServiceUnavailable', 'the API server is starting'))
  const managementEndpoint: Endpoint = {
    handler: (request, identity) => handler(request, identity),
    authenticate: (credentials) => (management ? management.server.authenticate : authenticateByCertificate)(credentials),
    serving: access.server,
    clientCA: access.authority.certificate,
  }
  const endpointFor = (servername: string | undefined) =>
    servername === undefined ? managementEndpoint : (management?.workloads.endpointFor(servername) ?? managementEndpoint)
  const samePort = { requested: options.port, file: options.portFile, usual: UsualPort, flag: '--port' }
  const listener = await listenOnSamePort({ host, endpointFor, clock, log }, samePort)
  try {
    management = await createManagementCluster({
      stores,
      clock,
      admissionClock: clock,
      random,
      log,
      endpoint: { host, port: listener.port },
      ...(options.onHookCall ? { onHookCall: options.onHookCall } : {}),
      ...(options.hookTransport ? { hookTransport: options.hookTransport } : {}),
      ...(options.onCall ? { onCall: options.onCall } : {}),
      ...(options.providerHooks ? { providerHooks: options.providerHooks } : {}),
    })
    const { engine, issuer, store } = management.server
    handler = createHandler({ engine, issuer, clock, log, checks: [storeCheck(store)] })
    await management.server.advertise({ address: advertisedAddress(host, networkInterfaces()), port: listener.port })
    await writeKubeconfig(options.kubeconfig, listener.url, access)
  } catch (err) {
    await listener.close(0)
    await management?.close()
    throw err
  }
  const running = management
  return {
    management: running,
    url: listener.url,
    async close() {
      await listener.close(GraceOfRequests)
      await running.close()
    },
  }
}
