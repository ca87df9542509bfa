/** Runs upstream's managers through the lifecycle of a Cluster with a topology and in-memory machines, and measures each phase. */
import { readFileSync } from 'node:fs'
import { Cluster, ClusterClass, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import {
  type Client,
  createClient,
  CustomResourceDefinition,
  getCondition,
  type Input,
  isTrue,
  type Json,
  keyOf,
  type Kind,
  type KubeObject,
  Namespace,
  Node,
  Secret,
  systemClock,
  systemRandom,
} from '@capstan/kube'
import { httpsTransport, parseKubeconfig, resolveKubeconfig } from '@capstan/kube/node'
import { parseAllDocuments } from 'yaml'
import type { Checks } from '../processes/capstan-process.ts'
import type { RunningApiServer } from '../processes/api-server.ts'
import { until } from '../shared/until.ts'
import { type Clusterctl, clusterctlOn } from './clusterctl.ts'

export type Phase = (typeof phases)[number]
export const phases = [
  'class accepted',
  'control plane initialized',
  'Available',
  'scaled to 2 workers',
  'upgraded to v1.36.0',
  'moved away',
  'moved back',
  'Available again',
  'deleted',
  'all objects deleted',
  'namespace deleted',
] as const

const namespace = 'team'
const name = 'demo'
const key = { namespace, name }
const versions = { first: 'v1.35.0', second: 'v1.36.0' }

/** Time limit of each `until` in seconds, long enough for a busy machine. */
const Limit = 300

export interface LifecycleResult {
  /** Duration of each phase in seconds. */
  readonly times: ReadonlyMap<Phase, number>
  /** Output of clusterctl by command, once the Cluster is Available, without values that differ from run to run. */
  readonly output: ReadonlyMap<string, string>
}

export interface LifecycleOptions {
  readonly apiServer: RunningApiServer
  /** An API server with the same CustomResourceDefinitions and without managers. The Cluster is moved to it and back. */
  readonly moveTarget: RunningApiServer
  readonly checks: Checks
  readonly progress: (line: string) => void
}

/** Runs all `phases`: creates the namespace, the ClusterClass and the Cluster, changes and moves the Cluster, and deletes it and the namespace. */
export async function runUpstreamLifecycle(options: LifecycleOptions): Promise<LifecycleResult> {
  const { apiServer, moveTarget, checks, progress } = options
  const client = apiServer.client()
  const times = new Map<Phase, number>()
  let last = performance.now()
  const done = (phase: Phase) => {
    const now = performance.now()
    times.set(phase, (now - last) / 1000)
    last = now
    progress(`${phase} after ${times.get(phase)!.toFixed(1)} s`)
  }
  const waitFor = <T extends KubeObject>(kind: Kind<T>, description: string, holds: (objects: T[]) => boolean) =>
    until(client, kind, description, holds, { namespace, seconds: Limit })
  const topology = (operations: readonly { path: string; value: string | number }[]) =>
    client.patch(Cluster, key, {
      type: 'json',
      operations: operations.map(({ path, value }) => ({ op: 'replace', path: `/spec/topology/${path}`, value })),
    })

  const kinds = await customKinds(client)
  await client.create(Namespace, { metadata: { name: namespace } })
  const manifests = parseAllDocuments(readFileSync(new URL('class.yaml', import.meta.url), 'utf8'))
  for (const document of manifests) {
    const object = document.toJS() as Input<KubeObject> & { kind: string }
    await client.create(kinds.get(object.kind)!, { ...object, metadata: { ...object.metadata, namespace } })
  }
  await waitFor(
    ClusterClass,
    'class accepted',
    ([clusterClass]) => clusterClass !== undefined && isTrue(clusterClass, 'VariablesReady'),
  )
  done('class accepted')

  await client.create(Cluster, cluster)
  const created = performance.now()
  await waitFor(
    Cluster,
    'control plane initialized',
    ([cluster]) => cluster !== undefined && isTrue(cluster, 'ControlPlaneInitialized'),
  )
  done('control plane initialized')
  await waitFor(Cluster, 'Available', ([cluster]) => cluster !== undefined && isTrue(cluster, 'Available'))
  done('Available')
  progress(`the Cluster is Available ${((performance.now() - created) / 1000).toFixed(1)} s after its creation`)
  await waitFor(
    Cluster,
    'the status of the Cluster reports its Machines',
    ([cluster]) => cluster !== undefined && isSettled(cluster) && isReported(cluster),
  )
  const clusterctl = await clusterctlOn(apiServer)
  const output = await clusterctlOutput(clusterctl, checks)
  last = performance.now()

  await topology([{ path: 'workers/machineDeployments/0/replicas', value: 2 }])
  await waitFor(
    MachineDeployment,
    'scaled to 2 workers',
    ([machineDeployment]) => machineDeployment?.status?.availableReplicas === 2,
  )
  await waitFor(Cluster, 'scaled to 2 workers', ([cluster]) => cluster !== undefined && isSettled(cluster))
  done('scaled to 2 workers')

  await topology([{ path: 'version', value: versions.second }])
  await waitFor(
    Machine,
    'upgraded to v1.36.0',
    (machines) =>
      machines.length === 3 &&
      machines.every((machine) => machine.spec.version === versions.second && isTrue(machine, 'Available')),
  )
  const [upgraded] = await waitFor(Cluster, 'upgraded to v1.36.0', ([cluster]) => cluster !== undefined && isSettled(cluster))
  done('upgraded to v1.36.0')
  for (const [type, status] of [
    ['Available', 'True'],
    ['RemoteConnectionProbe', 'True'],
    ['WorkersAvailable', 'True'],
    ['ControlPlaneMachinesUpToDate', 'True'],
    ['Deleting', 'False'],
    ['Paused', 'False'],
  ] as const) {
    const condition = getCondition(upgraded!, type)
    checks.check(`after the upgrade ${type} is ${status}`, condition?.status === status, condition)
  }

  await waitFor(MachineSet, 'the old MachineSet is deleted', (sets) => sets.length === 1)
  const before = await objects(client, kinds)
  const names = before.map(nameOf)
  await clusterctl.run('move', '--namespace', namespace, '--to-kubeconfig', moveTarget.kubeconfig)
  done('moved away')
  const targetClient = moveTarget.client()
  const moved = (await objects(targetClient, kinds)).map(nameOf)
  checks.check('clusterctl moves every object to another API server', moved.join() === names.join(), { names, moved })
  const stayed = (await objects(client, kinds)).map(nameOf)
  checks.check('clusterctl move deletes every object on the first API server', stayed.length === 0, stayed)
  // clusterctl moves objects without their status, and rejects objects that are not ready. No manager runs at the target, so the suite
  // copies the status.
  for (const { kind, object } of before)
    if (object.status !== undefined)
      await targetClient.patch(kind, keyOf(object), { type: 'merge', body: { status: object.status } }, { subresource: 'status' })
  await (await clusterctlOn(moveTarget)).run('move', '--namespace', namespace, '--to-kubeconfig', apiServer.kubeconfig)
  done('moved back')
  await waitFor(Cluster, 'Available again', ([cluster]) => cluster !== undefined && isSettled(cluster))
  const back = (await objects(client, kinds)).map(nameOf)
  checks.check('the same objects exist after they were moved back', back.join() === names.join(), { names, back })
  done('Available again')

  await client.delete(Cluster, key)
  await waitFor(Cluster, 'deleted', (clusters) => clusters.length === 0)
  done('deleted')
  // The garbage collector deletes the Secrets of deleted owners, shortly after the Cluster.
  const undeleted = await undeletedObjects(client, kinds)
  checks.check('all objects of a deleted cluster are deleted', undeleted.length === 0, undeleted)
  done('all objects deleted')

  await client.delete(Namespace, { name: namespace })
  await until(
    client,
    Namespace,
    'namespace deleted',
    (namespaces) => !namespaces.some((object) => object.metadata.name === namespace),
    {
      seconds: Limit,
    },
  )
  done('namespace deleted')
  return { times, output }
}

const cluster: Input<Cluster> = {
  metadata: key,
  spec: {
    clusterNetwork: {
      services: { cidrBlocks: ['10.128.0.0/12'] },
      pods: { cidrBlocks: ['192.168.0.0/16'] },
      serviceDomain: 'cluster.local',
    },
    topology: {
      classRef: { name: 'memory' },
      version: versions.first,
      controlPlane: { replicas: 1 },
      workers: { machineDeployments: [{ class: 'worker', name: 'md-0', replicas: 1 }] },
    },
  },
}

/** Matches kind and name of the ClusterClass and its templates. These objects remain when the Cluster is deleted. */
const classObjects =
  /^(ClusterClass|DevClusterTemplate|KubeadmControlPlaneTemplate|DevMachineTemplate|KubeadmConfigTemplate) memory(-worker|-control-plane)?$/

/** Returns the output of `clusterctl describe` by command; checks the kubeconfig that `clusterctl get kubeconfig` prints. */
async function clusterctlOutput(clusterctl: Clusterctl, checks: Checks): Promise<Map<string, string>> {
  const command = [
    'describe',
    'cluster',
    name,
    '--namespace',
    namespace,
    '--show-conditions',
    'all',
    '--show-templates',
    '--echo',
  ]
  const output = new Map([[command.join(' '), normalize((await clusterctl.run(...command)).out)]])
  const access = await resolveKubeconfig(
    parseKubeconfig((await clusterctl.run('get', 'kubeconfig', name, '--namespace', namespace)).out),
  )
  const transport = httpsTransport(access, { clock: systemClock, random: systemRandom, userAgent: 'interop' })
  const { items } = await createClient(transport).list(Node)
  transport.close()
  checks.check('a client with the kubeconfig of clusterctl lists the two Nodes of the cluster', items.length === 2, items.length)
  return output
}

/** Replaces ages and the suffixes of generated names. Also shortens the space between columns, because it depends on these values. */
const normalize = (text: string): string =>
  text
    .split('\n')
    .map((line) =>
      line
        .replaceAll(/\b\d+[sm](\d+s)?\b/g, 'AGE')
        .replaceAll(/((?:-[bcdfghjklmnpqrstvwxz2456789]{5})+)\b/g, '-*')
        .replaceAll(/ {2,}/g, '  ')
        .trimEnd(),
    )
    .join('\n')

interface Found {
  readonly kind: Kind
  readonly object: KubeObject & { status?: Json }
}

const nameOf = ({ kind, object }: Found): string => `${kind.kind} ${object.metadata.name}`

/** Returns all objects of the namespaced `kinds` and all Secrets in the namespace, sorted by kind and name. */
async function objects(client: Client, kinds: ReadonlyMap<string, Kind>): Promise<Found[]> {
  const listed: Found[] = []
  for (const kind of [...kinds.values(), Secret as Kind].filter(({ scope }) => scope === 'Namespaced'))
    for (const object of (await client.list(kind, { namespace })).items) listed.push({ kind, object })
  return listed.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
}

/** Waits, at most a minute, until only the ClusterClass and its templates are left; returns the names of other objects. */
async function undeletedObjects(client: Client, kinds: ReadonlyMap<string, Kind>): Promise<string[]> {
  const end = performance.now() + 60_000
  for (;;) {
    const undeleted = (await objects(client, kinds)).map(nameOf).filter((objectName) => !classObjects.test(objectName))
    if (undeleted.length === 0 || performance.now() > end) return undeleted
    await new Promise((resolve) => void setTimeout(resolve, 500))
  }
}

const isSettled = (cluster: Cluster): boolean =>
  isTrue(cluster, 'Available') &&
  isTrue(cluster, 'TopologyReconciled') &&
  getCondition(cluster, 'RollingOut')?.status === 'False' &&
  getCondition(cluster, 'ScalingUp')?.status === 'False' &&
  getCondition(cluster, 'ScalingDown')?.status === 'False'

/** Whether the status of the Cluster reports its control plane Machine and its worker Machine as ready and available. */
const isReported = (cluster: Cluster): boolean =>
  isTrue(cluster, 'ControlPlaneMachinesReady') &&
  isTrue(cluster, 'WorkerMachinesReady') &&
  cluster.status?.controlPlane?.availableReplicas === 1 &&
  cluster.status.workers?.availableReplicas === 1

/** Returns the kinds that CustomResourceDefinitions define, in their storage version, by the name of the kind. */
async function customKinds(client: Client): Promise<Map<string, Kind>> {
  const { items } = await client.list(CustomResourceDefinition)
  return new Map(
    items.map(({ spec: { group, names, scope, versions } }) => [
      names.kind,
      { group, version: versions.find(({ storage }) => storage)!.name, kind: names.kind, plural: names.plural, scope },
    ]),
  )
}
