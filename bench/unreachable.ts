/**
 * Measures the time from the creation of fifty Clusters until all are Available: alone, together with fifty other Clusters that are
 * Available, and together with fifty other Clusters whose workload API servers refuse connections, never respond, have an expired
 * certificate or respond with an error after eight seconds. A short run has eight Clusters instead of fifty.
 */
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { Cluster, Machine } from '@capstan/api'
import { hours, isTrue, Secret, seconds, sleep, systemClock } from '@capstan/kube'
import { formatKubeconfig, issueCertificate, kubeconfigFor, makeAuthority } from '@capstan/kube/node'
import { createFrom } from '@capstan/testing'
import { freePorts } from '../interop/processes/programs.ts'
import { until } from '../interop/shared/until.ts'
import { aCluster } from './clusters.ts'
import { type BenchOptions, type Figure, inParallel, median, now } from './figure.ts'
import { startManagement } from './management.ts'

const machinesOfCluster = 3
/** Milliseconds after which the slow API server responds. */
const Delay = seconds(8)
/** Time limit of a step in seconds. */
const Limit = 600

export async function* unreachableBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const count = short ? 8 : 50
  using servers = await startUnreachable()
  const { kubeconfigs } = servers
  const pause = seconds(short ? 2 : 20)
  const settings: { readonly name: string; readonly scale: Scale; readonly times: number[] }[] = [
    { name: `apply to Available, ${count} clusters`, scale: { count, others: 0, kubeconfigs: [], pause: 0 }, times: [] },
    { name: `the same beside ${count} that are Available`, scale: { count, others: count, kubeconfigs: [], pause }, times: [] },
    {
      name: `the same beside ${count} with unreachable API servers`,
      scale: { count, others: count, kubeconfigs, pause },
      times: [],
    },
  ]
  for (let round = 0; round < (short ? 1 : 5); round++)
    for (const { scale, times } of settings) times.push(await timeToAvailable(scale))
  for (const { name, times } of settings) yield { name, value: median(times), unit: 's' }
}

interface Scale {
  readonly count: number
  /** Number of other Clusters, which exist before the measurement. */
  readonly others: number
  /**
   * Kubeconfigs with unreachable API servers, used for the other Clusters in turn. Without any, the other Clusters get kubeconfigs from the
   * local provider.
   */
  readonly kubeconfigs: readonly string[]
  /**
   * Milliseconds to wait before the measurement, after the Machines of the other Clusters have got their infrastructure. In
   * the 20 s of a full run, Clusters with reachable API servers become Available, and connections to unreachable API servers fail or time
   * out.
   */
  readonly pause: number
}

async function timeToAvailable({ count, others, kubeconfigs, pause }: Scale): Promise<number> {
  const { management, close } = await startManagement()
  const { client } = management
  try {
    await createFrom(client, new URL('clusterclass.yaml', import.meta.url))
    await inParallel(others, 20, async (index) => {
      const cluster = aCluster(`other-${index}`)
      const kubeconfig = kubeconfigs[index % kubeconfigs.length]
      if (kubeconfig !== undefined) await client.create(Secret, kubeconfigSecret(cluster.metadata, kubeconfig))
      await client.create(Cluster, cluster)
    })
    const areProvisioned = (all: readonly Machine[]) =>
      all.length === others * machinesOfCluster && all.every((machine) => isTrue(machine, 'InfrastructureReady'))
    await until(client, Machine, 'machines of the other clusters', areProvisioned, { seconds: Limit })
    await sleep(systemClock, pause)

    const started = now()
    await inParallel(count, 20, (index) => client.create(Cluster, aCluster(`measured-${index}`)))
    const areAvailable = (all: readonly Cluster[]) =>
      all.filter((cluster) => cluster.metadata.name.startsWith('measured-') && isTrue(cluster, 'Available')).length === count
    const all = await until(client, Cluster, 'measured clusters are Available', areAvailable, { seconds: Limit })
    const connected = all.filter((cluster) => isTrue(cluster, 'RemoteConnectionProbe'))
    if (kubeconfigs.length > 0 && connected.length > count) throw new Error('core has connected to an unreachable API server')
    return (now() - started) / 1000
  } finally {
    await close()
  }
}

/** Returns a kubeconfig Secret as a user creates it. The control plane provider does not overwrite it. */
const kubeconfigSecret = ({ name, namespace }: { readonly name: string; readonly namespace: string }, value: string) => ({
  metadata: { name: `${name}-kubeconfig`, namespace, labels: { 'cluster.x-k8s.io/cluster-name': name } },
  type: 'cluster.x-k8s.io/secret',
  data: { value: Buffer.from(value).toString('base64') },
})

/** Starts the servers that accept connections, and returns one kubeconfig for each kind of unreachable API server. */
async function startUnreachable() {
  const authority = await makeAuthority(systemClock, { commonName: 'bench', backdate: hours(48) })
  const issue = { commonName: 'server', usages: ['server'], ipAddresses: ['127.0.0.1'] } as const
  const valid = await issueCertificate(authority, systemClock, issue)
  const expired = await issueCertificate(authority, systemClock, { ...issue, backdate: hours(48), validity: hours(-24) })
  const https = ({ certificate: cert, key }: typeof valid, delay: number) =>
    createHttpsServer({ cert, key }, (_, response) => void setTimeout(() => response.writeHead(503).end(), delay))
  const servers = [
    // Accepts connections and never sends data.
    createServer(() => {}),
    https(expired, 0),
    https(valid, Delay),
  ]
  // Nothing listens on the last port: connections to it are refused.
  const ports = [...(await Promise.all(servers.map(listening))), ...(await freePorts(1))]
  const user = await issueCertificate(authority, systemClock, { commonName: 'bench', usages: ['client'] })
  const access = { ca: authority.certificate, certificate: user.certificate, key: user.key }
  const kubeconfigs = ports.map((port) =>
    formatKubeconfig(kubeconfigFor('workload', { server: `https://127.0.0.1:${port}`, ...access })),
  )
  return {
    kubeconfigs,
    [Symbol.dispose]() {
      for (const server of servers) server.close()
    },
  }
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}
