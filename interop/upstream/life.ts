/** The life of a topology cluster of machines in memory, as upstream's managers lead it, timed. */
import { readFileSync } from 'node:fs'
import { Cluster, ClusterClass, Machine, MachineDeployment } from '@capstan/api'
import {
  type Client,
  CustomResourceDefinition,
  getCondition,
  type Input,
  isTrue,
  type Kind,
  type KubeObject,
  Namespace,
  Secret,
} from '@capstan/kube'
import { parseAllDocuments } from 'yaml'
import type { Checks } from '../capstan-process.ts'
import { until } from '../until.ts'

export type Phase = (typeof phases)[number]
export const phases = [
  'class accepted',
  'control plane initialized',
  'Available',
  'scaled to 2 workers',
  'upgraded to v1.36.0',
  'deleted',
  'nothing left',
  'namespace gone',
] as const

const namespace = 'team'
const name = 'demo'
const key = { namespace, name }
const versions = { first: 'v1.35.0', second: 'v1.36.0' }

/** No single step takes upstream longer than this, on a machine that is busy with other things as well. */
const Limit = 300

/** @returns seconds of each phase */
export async function liveUpstream(
  client: Client,
  checks: Checks,
  progress: (line: string) => void,
): Promise<Map<Phase, number>> {
  const times = new Map<Phase, number>()
  let last = performance.now()
  const done = (phase: Phase) => {
    const now = performance.now()
    times.set(phase, (now - last) / 1000)
    last = now
    progress(`${phase} after ${times.get(phase)!.toFixed(1)} s`)
  }
  const awaited = <T extends KubeObject>(kind: Kind<T>, phase: Phase, holds: (objects: T[]) => boolean) =>
    until(client, kind, phase, holds, { namespace, seconds: Limit })
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
  await awaited(ClusterClass, 'class accepted', ([one]) => one !== undefined && isTrue(one, 'VariablesReady'))
  done('class accepted')

  await client.create(Cluster, cluster)
  const created = performance.now()
  await awaited(Cluster, 'control plane initialized', ([one]) => one !== undefined && isTrue(one, 'ControlPlaneInitialized'))
  done('control plane initialized')
  await awaited(Cluster, 'Available', ([one]) => one !== undefined && isTrue(one, 'Available'))
  done('Available')
  progress(`Available ${((performance.now() - created) / 1000).toFixed(1)} s after it was created`)

  await topology([{ path: 'workers/machineDeployments/0/replicas', value: 2 }])
  await awaited(MachineDeployment, 'scaled to 2 workers', ([one]) => one?.status?.availableReplicas === 2)
  await awaited(Cluster, 'scaled to 2 workers', ([one]) => one !== undefined && isSettled(one))
  done('scaled to 2 workers')

  await topology([{ path: 'version', value: versions.second }])
  await awaited(
    Machine,
    'upgraded to v1.36.0',
    (machines) =>
      machines.length === 3 && machines.every((one) => one.spec.version === versions.second && isTrue(one, 'Available')),
  )
  const [upgraded] = await awaited(Cluster, 'upgraded to v1.36.0', ([one]) => one !== undefined && isSettled(one))
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

  await client.delete(Cluster, key)
  await awaited(Cluster, 'deleted', (clusters) => clusters.length === 0)
  done('deleted')
  // Secrets go by their owners: that is the garbage collector's work, and takes a moment after the cluster.
  const left = await nothingLeft(client, [...kinds.values(), Secret])
  checks.check('a deleted cluster leaves nothing behind', left.length === 0, left)
  done('nothing left')

  await client.delete(Namespace, { name: namespace })
  await until(client, Namespace, 'namespace gone', (found) => !found.some((one) => one.metadata.name === namespace), {
    seconds: Limit,
  })
  done('namespace gone')
  return times
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

/** What was made for the class, and may stay. */
const kept =
  /^(ClusterClass|DevClusterTemplate|KubeadmControlPlaneTemplate|DevMachineTemplate|KubeadmConfigTemplate) memory(-worker|-control-plane)?$/

async function nothingLeft(client: Client, kinds: readonly Kind[]): Promise<string[]> {
  const left: string[] = []
  const end = performance.now() + 60_000
  do {
    left.length = 0
    for (const kind of kinds)
      for (const { metadata } of (await client.list(kind, kind.scope === 'Namespaced' ? { namespace } : {})).items)
        if (!kept.test(`${kind.kind} ${metadata.name}`)) left.push(`${kind.kind} ${metadata.name}`)
    if (left.length > 0) await new Promise((resolve) => void setTimeout(resolve, 500))
  } while (left.length > 0 && performance.now() < end)
  return left
}

const isSettled = (one: Cluster): boolean =>
  isTrue(one, 'Available') &&
  isTrue(one, 'TopologyReconciled') &&
  getCondition(one, 'RollingOut')?.status === 'False' &&
  getCondition(one, 'ScalingUp')?.status === 'False' &&
  getCondition(one, 'ScalingDown')?.status === 'False'

/** The kinds that definitions have added, as they are stored, by name. */
async function customKinds(client: Client): Promise<Map<string, Kind>> {
  const { items } = await client.list(CustomResourceDefinition)
  return new Map(
    items.map(({ spec: { group, names, scope, versions } }) => [
      names.kind,
      { group, version: versions.find(({ storage }) => storage)!.name, kind: names.kind, plural: names.plural, scope },
    ]),
  )
}
