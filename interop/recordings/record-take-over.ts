/**
 * Records the objects of a Cluster that upstream's core and the local provider have reconciled, and the Nodes of its workload cluster. The
 * test `packages/testing/src/take-over.env.test.ts` begins with the recorded objects.
 *
 * Usage: `node interop/recordings/record-take-over.ts`.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Cluster, coreKinds, Machine } from '@capstan/api'
import { getCondition, isTrue, type Kind, type KubeObject, Node, Secret } from '@capstan/kube'
import { demoFolder } from '@capstan/lab'
import { localKinds } from '@capstan/local'
import { readManifests } from '@capstan/testing'
import { startCapstan, withClient } from '../processes/capstan-process.ts'
import { startCapstanApiServer } from '../processes/capstan-api-server.ts'
import { until } from '../shared/until.ts'
import { components, managersUser, startManagers } from '../upstream/managers.ts'

const recording = fileURLToPath(new URL('../../packages/testing/src/take-over/upstream-core.json', import.meta.url))
const key = { namespace: 'default', name: 'demo' }
/** Address of the workload cluster in the test. */
const TestEndpoint = '127.0.0.1:6443'
const taints = [{ key: 'recorded', value: 'yes', effect: 'NoSchedule', propagation: 'Always' }]
const labels = { recorded: 'yes', kept: 'yes' }

await using apiServer = await startCapstanApiServer({ users: [managersUser], progress: console.log })
const client = apiServer.client()
const core = components.filter(({ tool }) => tool === 'capi-core')
const gates = 'ClusterTopology=true,RuntimeSDK=true,MachinePool=true,MachineTaintPropagation=true'
await using _ = await startManagers(apiServer, console.log, { components: core, gates })
const flags = ['--kubeconfig', apiServer.kubeconfig, '--providers', 'local', '--diagnostics-port', '0', '--webhook-port', '0']
const local = await startCapstan(['manager', ...flags, '--data', join(apiServer.folder, 'local')], /Manager ready/)
try {
  const kinds = new Map<string, Kind>([...coreKinds, ...localKinds].map((kind) => [kind.kind, kind as Kind]))
  for (const file of ['class.yaml', 'cluster.yaml'])
    for (const object of readManifests(new URL(file, demoFolder)))
      await client.create(kinds.get(object.kind)!, withMetadata(object))
  await until(client, Cluster, 'the Cluster is settled', ([cluster]) => cluster !== undefined && isSettled(cluster), {
    seconds: 240,
  })
  await until(
    client,
    Machine,
    'five available Machines',
    (all) => all.length === 5 && all.every((machine) => isTrue(machine, 'Available')),
    {
      seconds: 240,
    },
  )
  // Gives the controllers time for late writes.
  await new Promise((resolve) => void setTimeout(resolve, 20_000))

  const objects: KubeObject[] = []
  for (const kind of [...kinds.values(), Secret as Kind])
    objects.push(...(await client.list(kind, kind.scope === 'Namespaced' ? { namespace: key.namespace } : {})).items)
  const kubeconfigSecret = await client.get(Secret, { ...key, name: 'demo-kubeconfig' })
  const kubeconfig = Buffer.from(kubeconfigSecret.data!['value']!, 'base64').toString()
  const address = /server: ["']?https:\/\/([^"'\s]+)/.exec(kubeconfig)![1]!
  const kubeconfigFile = join(apiServer.folder, 'workload.kubeconfig')
  writeFileSync(kubeconfigFile, kubeconfig)
  const nodes = await withClient(kubeconfigFile, async (workload) => (await workload.list(Node)).items)
  const withTestAddress = (object: KubeObject) => withAddress(object, address)
  mkdirSync(new URL('.', `file://${recording}`), { recursive: true })
  const lines = (items: readonly KubeObject[]) => items.map((item) => JSON.stringify(item)).join(',\n')
  writeFileSync(
    recording,
    `{"at":${Date.now()},"objects":[\n${lines(objects.map(withTestAddress))}\n],"nodes":[\n${lines(nodes)}\n]}\n`,
  )
  console.log(`${objects.length} objects and ${nodes.length} Nodes recorded in ${recording}`)
} finally {
  await local.kill()
}

/** Adds to a Cluster the labels and taints that the test changes or removes. Returns objects of other kinds unchanged. */
function withMetadata(object: any): any {
  if (object.kind !== 'Cluster') return object
  const { topology } = object.spec
  const machineDeployments = topology.workers.machineDeployments.map((deployment: object) => ({
    ...deployment,
    metadata: { labels },
    taints,
  }))
  return {
    ...object,
    spec: {
      topology: {
        ...topology,
        controlPlane: { ...topology.controlPlane, metadata: { labels } },
        workers: { ...topology.workers, machineDeployments },
      },
    },
  }
}

function isSettled(cluster: Cluster): boolean {
  return (
    isTrue(cluster, 'Available') &&
    isTrue(cluster, 'TopologyReconciled') &&
    ['RollingOut', 'ScalingUp', 'ScalingDown'].every((type) => getCondition(cluster, type)?.status === 'False')
  )
}

/** Replaces the address of the workload cluster with `TestEndpoint`, in fields and in Secrets. */
function withAddress(object: KubeObject, address: string): KubeObject {
  const [host, port] = address.split(':')
  const replaced = JSON.parse(
    JSON.stringify(object).replaceAll(`"host":"${host}","port":${port}`, '"host":"127.0.0.1","port":6443'),
  )
  for (const [name, value] of Object.entries(replaced.data ?? {})) {
    const text = Buffer.from(value as string, 'base64').toString()
    if (text.includes(address)) replaced.data[name] = Buffer.from(text.replaceAll(address, TestEndpoint)).toString('base64')
  }
  return replaced
}
