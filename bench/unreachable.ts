/**
 * Measures the time from apply to Available of fifty Clusters, alone and beside fifty others whose workload API servers refuse connections,
 * never respond, have an expired certificate or respond to each request after eight seconds.
 */
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Cluster, Machine } from '@capstan/api'
import { hours, isTrue, Secret, seconds, silent, sleep, systemClock, systemRandom } from '@capstan/kube'
import { formatKubeconfig, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { memoryStores } from '@capstan/lab'
import { createFrom } from '@capstan/testing'
import { until } from '../interop/until.ts'
import { servePlane } from '../packages/cli/src/serve-plane.ts'
import { aCluster } from './clusters.ts'
import { type BenchOptions, type Figure, inParallel, median, now } from './figure.ts'

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
  const folder = mkdtempSync(join(tmpdir(), 'capstan-bench-'))
  const { plane, close } = await servePlane({
    stores: memoryStores(),
    clock: systemClock,
    random: systemRandom,
    log: silent,
    pki: undefined,
    portFile: undefined,
    port: 0,
    kubeconfig: join(folder, 'kubeconfig'),
  })
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
    rmSync(folder, { recursive: true })
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
  const ports = await Promise.all(servers.map(listening))
  const refused = createServer()
  ports.push(await listening(refused))
  await closed(refused)

  const user = await issueCertificate(authority, systemClock, { commonName: 'bench', usages: ['client'] })
  const encode = (text: string) => Buffer.from(text).toString('base64')
  const kubeconfigs = ports.map((port) =>
    formatKubeconfig({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'workload',
          cluster: { server: `https://127.0.0.1:${port}`, 'certificate-authority-data': encode(authority.certificate) },
        },
      ],
      users: [
        { name: 'bench', user: { 'client-certificate-data': encode(user.certificate), 'client-key-data': encode(user.key) } },
      ],
      contexts: [{ name: 'workload', context: { cluster: 'workload', user: 'bench' } }],
      'current-context': 'workload',
    }),
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

const closed = (server: Server) => new Promise<void>((resolve) => server.close(() => resolve()))
