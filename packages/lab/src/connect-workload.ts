/** Connects controllers to workload clusters: in-process for clusters that this process simulates, over HTTPS for others. */
import type { Client, Clock, Random } from '@capstan/kube'
import { createClient, orAbsent, Pod } from '@capstan/kube'
import { type ClusterAccess, httpsTransport, parseKubeconfig, resolveKubeconfig } from '@capstan/kube/node'
import type { Workloads } from '@capstan/local'

export interface ConnectOptions {
  readonly clock: Clock
  readonly random: Random
  /** Address at which this process serves the clusters that it simulates. */
  readonly endpoint: { readonly host: string; readonly port: number }
  /** The Pod in which this process runs, if it runs in a cluster. */
  readonly ownPod?: OwnPod
}

/** The Pod of this process, and the in-cluster address and certificate authority of its API server. */
export interface OwnPod extends Pick<ClusterAccess, 'server' | 'ca'> {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/**
 * Returns a function that connects to a workload cluster. For a simulated cluster it waits until the API server runs, because the
 * kubeconfig may exist earlier. As upstream does, the cluster in which this process runs is accessed at its in-cluster address,
 * because the load balancer of a cluster may not be reachable from the cluster's own Nodes.
 */
export const connectWorkload =
  (workloads: Pick<Workloads, 'whenStarted'>, { clock, random, endpoint, ownPod }: ConnectOptions) =>
  async (kubeconfig: string): Promise<Client> => {
    const access = await resolveKubeconfig(parseKubeconfig(kubeconfig))
    const { host } = new URL(access.server)
    const isSimulated = access.servername !== undefined && host === `${endpoint.host}:${endpoint.port}`
    if (isSimulated) return createClient(await workloads.whenStarted(access.servername!))
    const clientFor = (to: ClusterAccess) => createClient(httpsTransport(to, { clock, random, userAgent: 'capstan' }))
    const client = clientFor(access)
    if (!ownPod || !(await isClusterOf(ownPod, client))) return client
    client.transport.close()
    const { ca: _, ...withoutAuthority } = access
    const { server, ca } = ownPod
    return clientFor({ ...withoutAuthority, server, ...(ca === undefined ? {} : { ca }) })
  }

/** Reports whether the Pod runs in the cluster of the client. */
async function isClusterOf({ namespace, name, uid }: OwnPod, client: Client): Promise<boolean> {
  const pod = await orAbsent(client.get(Pod, { namespace, name }))
  return pod?.metadata.uid === uid
}
