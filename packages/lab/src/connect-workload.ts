/** Connects controllers to workload clusters: in-process for clusters that this process simulates, over HTTPS for others. */
import type { Client, Clock, Random } from '@capstan/kube'
import { createClient } from '@capstan/kube'
import { httpsTransport, parseKubeconfig, resolveKubeconfig } from '@capstan/kube/node'
import type { Workloads } from '@capstan/local'

export interface ConnectOptions {
  readonly clock: Clock
  readonly random: Random
  /** Address at which this process serves the clusters that it simulates. */
  readonly endpoint: { readonly host: string; readonly port: number }
}

/**
 * Returns a function that connects to a workload cluster. For a simulated cluster it waits until the API server runs, because the
 * kubeconfig may exist earlier.
 */
export const connectWorkload =
  (workloads: Pick<Workloads, 'whenStarted'>, { clock, random, endpoint }: ConnectOptions) =>
  async (kubeconfig: string): Promise<Client> => {
    const access = await resolveKubeconfig(parseKubeconfig(kubeconfig))
    const { host } = new URL(access.server)
    const isSimulated = access.servername !== undefined && host === `${endpoint.host}:${endpoint.port}`
    const transport = isSimulated
      ? await workloads.whenStarted(access.servername!)
      : httpsTransport(access, { clock, random, userAgent: 'capstan' })
    return createClient(transport)
  }
