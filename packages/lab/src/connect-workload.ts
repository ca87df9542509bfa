/** How controllers reach workload clusters: without a socket where the cluster lives in this process, over HTTPS elsewhere. */
import type { Client, Clock, Random } from '@capstan/kube'
import { createClient } from '@capstan/kube'
import { httpsTransport, parseKubeconfig, resolveKubeconfig } from '@capstan/kube/node'
import type { Workloads } from '@capstan/local'

export const connectWorkload =
  (workloads: Pick<Workloads, 'transportFor'>, io: { clock: Clock; random: Random }) =>
  async (kubeconfig: string): Promise<Client> => {
    const access = await resolveKubeconfig(parseKubeconfig(kubeconfig))
    const inProcess = access.servername === undefined ? undefined : workloads.transportFor(access.servername)
    return createClient(inProcess ?? httpsTransport(access, { ...io, userAgent: 'capstan' }))
  }
