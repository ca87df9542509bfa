/**
 * Measures the time from apply to Available of fifty Clusters, alone and beside fifty others whose workload API servers refuse connections,
 * never respond, have an expired certificate or respond to each request after eight seconds.
 */
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { Cluster, Machine } from '@capstan/api'
import { hours, isTrue, Secret, seconds, sleep, systemClock } from '@capstan/kube'
import { formatKubeconfig, issueCertificate, kubeconfigFor, makeAuthority } from '@capstan/kube/node'
import { createFrom } from '@capstan/testing'
import { freePorts } from '../interop/programs.ts'
import { until } from '../interop/until.ts'
import { aCluster } from './clusters.ts'
import { type BenchOptions, type Figure, inParallel, median, now } from './figure.ts'
import { startBenchPlane } from './plane.ts'

const machinesOfCluster = 3
const Delay = seconds(8)
/** Time limit of a step in seconds. */
const Limit = 600

export async function* unreachableBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const count = short ? 8 : 50
  using servers = await startUnreachable()
  const alone: number[] = []
  const beside: number[] = []
  for (let round = 0; round < (short ? 1 : 5); round++) {
    alone.push(await timeToAvailable({ count, others: 0, kubeconfigs: [], pause: 0 }))
    beside.push(await timeToAvailable({ count, others: count, kubeconfigs: servers.kubeconfigs, pause: seconds(short ? 2 : 20) }))
  }
  yield { name: `apply to Available, ${count} clusters`, value: median(alone), unit: 's' }
  yield { name: `the same beside ${count} with unreachable API servers`, value: median(beside), unit: 's' }
}

interface Scale {
  readonly count: number
  /** Clusters that exist already and cannot be reached. */
  readonly others: number
  readonly kubeconfigs: readonly string[]
  /** Milliseconds in which connections to the others fail or time out, before the measurement. */
  readonly pause: number
}

async function timeToAvailable({ count, others, kubeconfigs, pause }: Scale): Promise<number> {
  const { plane, close } = await startBenchPlane()
  const { client } = plane
  try {
    await createFrom(client, new URL('clusterclass.yaml', import.meta.url))
    await inParallel(others, 20, async (index) => {
      const cluster = aCluster(`unreachable-${index}`)
      await client.create(Secret, kubeconfigSecret(cluster.metadata, kubeconfigs[index % kubeconfigs.length]!))
      await client.create(Cluster, cluster)
    })
    const areProvisioned = (all: readonly Machine[]) =>
      all.length === others * machinesOfCluster && all.every((one) => isTrue(one, 'InfrastructureReady'))
    await until(client, Machine, 'machines of the unreachable clusters', areProvisioned, { seconds: Limit })
    await sleep(systemClock, pause)

    const started = now()
    await inParallel(count, 20, (index) => client.create(Cluster, aCluster(`reachable-${index}`)))
    const areAvailable = (all: readonly Cluster[]) =>
      all.filter((one) => one.metadata.name.startsWith('reachable-') && isTrue(one, 'Available')).length === count
    const all = await until(client, Cluster, 'reachable clusters are Available', areAvailable, { seconds: Limit })
    const connected = all.filter((one) => isTrue(one, 'RemoteConnectionProbe'))
    if (connected.length > count) throw new Error('core has connected to an unreachable API server')
    return (now() - started) / 1000
  } finally {
    await close()
  }
}

/** The kubeconfig that a user provides: the control plane provider keeps it. */
const kubeconfigSecret = ({ name, namespace }: { readonly name: string; readonly namespace: string }, value: string) => ({
  metadata: { name: `${name}-kubeconfig`, namespace, labels: { 'cluster.x-k8s.io/cluster-name': name } },
  type: 'cluster.x-k8s.io/secret',
  data: { value: Buffer.from(value).toString('base64') },
})

/** Starts one server of each kind. */
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
