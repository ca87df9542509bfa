/** A complete management cluster in one process: API server, core provider, local provider and its simulated workload clusters. */
import { coreKinds } from '@capstan/api'
import type { WebhookTransport } from '@capstan/apiserver'
import type { ApiServer } from '@capstan/kubernetes-kinds'
import { createApiServer } from '@capstan/kubernetes-kinds'
import type { Manager } from '@capstan/controller'
import { createManager, installKinds } from '@capstan/controller'
import type { Client, Clock, Transport } from '@capstan/kube'
import { createClient } from '@capstan/kube'
import type { Workloads } from '@capstan/local'
import { localKinds } from '@capstan/local'
import { providerAdmission } from './admission.ts'
import { ownConversion, ownWebhooks } from './own-webhooks.ts'
import type { ProvidersOptions } from './providers.ts'
import { createProviders, ProviderNames } from './providers.ts'

export interface ManagementClusterOptions extends Omit<ProvidersOptions, 'names' | 'client'> {
  /** Returns the transport of the controllers to the API server, for example over a socket or with faults. Default: in-process. */
  readonly reach?: (server: ApiServer, inProcess: Transport) => Transport | Promise<Transport>
  /**
   * Clock of waits within requests of clients, such as the wait for a new ClusterClass. Default: requests do not wait, because tests advance a
   * virtual clock only between requests.
   */
  readonly admissionClock?: Clock
  /** Transport for calls of webhooks that users register. Default: HTTPS. */
  readonly webhooks?: WebhookTransport
}

export interface ManagementCluster {
  readonly server: ApiServer
  /** A client for the caller, which does not use the transport of `reach`. */
  readonly client: Client
  readonly manager: Manager
  readonly workloads: Workloads
  /** Stops controllers, workload clusters and the API server with its store. */
  close(): Promise<void>
}

/** Starts a management cluster. Resolves when the API server serves every kind and the controllers run. */
export async function createManagementCluster(options: ManagementClusterOptions): Promise<ManagementCluster> {
  const { stores, clock, random, log, reach } = options
  const server = createApiServer({
    store: await stores.store('management'),
    clock,
    random,
    log,
    admission: providerAdmission(options.providerHooks, options.admissionClock, options.gates),
    webhooks: ownWebhooks([...coreKinds, ...localKinds], () => client, options.webhooks),
  })
  await server.ready
  const inProcess = server.transport({ agent: 'capstan' })
  const client = createClient(inProcess)
  const forControllers = createClient(reach ? await reach(server, inProcess) : inProcess)
  const { kinds, controllers, workloads, close } = createProviders({ ...options, names: ProviderNames, client: forControllers })
  await installKinds(client, kinds, { clock, random, conversion: ownConversion })
  const manager = createManager({ client: forControllers, clock, random, log, controllers })
  await manager.start()
  return {
    server,
    client,
    manager,
    workloads,
    async close() {
      await manager.stop()
      await close()
      await server.close()
    },
  }
}
