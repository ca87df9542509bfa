/** How controllers reach workload clusters: without a socket where the cluster is simulated by this process, over HTTPS elsewhere. */
import type { Client, Clock, Random } from '@capstan/kube'
import { createClient } from '@capstan/kube'
import { httpsTransport, parseKubeconfig, resolveKubeconfig } from '@capstan/kube/node'
import type { Workloads } from '@capstan/local'

export interface ConnectOptions {
  readonly clock: Clock
  readonly random: Random
  /** Where this process serves the clusters that it simulates. */
  readonly endpoint: { readonly host: string; readonly port: number }
}

/** The kubeconfig of a simulated cluster is there before its API server is: connecting then waits for it. */
export const connectWorkload =
  (workloads: Pick<Workloads, 'whenStarted'>, { clock, random, endpoint }: ConnectOptions) =>
  async (kubeconfig: string): Promise<Client> => {
    const access = await resolveKubeconfig(parseKubeconfig(kubeconfig))
    const { host } = new URL(access.server)
    const isOurs = access.servername !== undefined && host === `${endpoint.host}:${endpoint.port}`
    const transport = isOurs
      ? await workloads.whenStarted(access.servername!)
      : httpsTransport(access, { clock, random, userAgent: 'capstan' })
    return createClient(transport)
  }
