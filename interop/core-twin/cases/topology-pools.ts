/**
 * Cases of MachinePools in topologies.
 * Every case does the same with upstream's core and with Capstan's, and compares all objects after each step (`settle`).
 */
import { Cluster, ClusterClass, type MachinePool } from '@capstan/api'
import { getCondition, type KubeObject, Node } from '@capstan/kube'
import { clusterName } from '../objects.ts'
import { noReport } from '../providers.ts'
import { nodeInfoOf, type Report, reportNodeStatus } from '../side.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { aClass, createTopology, inZone, patch, patched, selector, set, topology, values } from './topology.ts'

const templateRef = (kind: string) => ({ templateRef: { apiVersion: `${stub.group}/v1`, kind, name: 'quick-worker' } })

/** Returns the MachinePool class `pool` of a ClusterClass. */
export const poolClass = (fields: object = {}) => ({
  class: 'pool',
  bootstrap: templateRef('StubConfigTemplate'),
  infrastructure: templateRef('StubMachineTemplate'),
  ...fields,
})

/** Returns the topology of a MachinePool of the class `pool`. */
export const poolTopology = (name: string, fields: object = {}) => ({ class: 'pool', name, replicas: 0, ...fields })

/** Returns the report of the provider of a MachinePool that consists of the given machines. */
export const poolReport = (...machines: readonly string[]): Report => ({
  spec: { providerIDList: machines.map((name) => `twin://${name}`) },
  status: { ready: true, initialization: { provisioned: true }, replicas: machines.length },
})

/** Creates a ClusterClass, and a Cluster of this class whose only workers are the given MachinePools. */
export async function createPoolTopology(twin: Twin, ...machinePools: readonly object[]): Promise<void> {
  await createTopology(twin, { workers: { machinePools: [poolClass()] } }, { workers: [], topology: pools(...machinePools) })
}

/** Registers a Node with the name and the provider ID of each given machine, as the kubelet of the machine does. */
export const registerPoolNodes = (twin: Twin, version: string, ...names: readonly string[]): Promise<void> =>
  twin.inWorkload(clusterName, async (client) => {
    for (const name of names) {
      await client.create(Node, { metadata: { name }, spec: { providerID: `twin://${name}` } }, { fieldManager: 'kubelet' })
      await reportNodeStatus(client, name, { nodeInfo: nodeInfoOf(version) })
    }
  })

const upgradeNode = (twin: Twin, name: string, version: string): Promise<void> =>
  twin.inWorkload(clusterName, (client) => reportNodeStatus(client, name, { nodeInfo: nodeInfoOf(version) }))

const pools = (...machinePools: readonly object[]) => ({ workers: { machinePools } })
const patchPools = (twin: Twin, ...machinePools: readonly object[]) =>
  twin.patch(Cluster, clusterName, topology(pools(...machinePools)))
const annotated = (name: string, annotation: string) =>
  poolTopology(name, { metadata: { annotations: { [`topology.cluster.x-k8s.io/${annotation}`]: '' } } })

/** Returns a predicate for `settle`: whether the TopologyReconciled condition of a Cluster has the reason, and a message with the text. */
export const reports =
  (reason: string, text = '') =>
  (objects: readonly KubeObject[]): boolean =>
    objects.some((object) => {
      if (object.kind !== 'Cluster') return false
      const { reason: current, message = '' } = getCondition(object as Cluster, 'TopologyReconciled') ?? {}
      return current === reason && message.includes(text)
    })
const isReconciled = reports('ReconcileSucceeded')
const upgrade = topology({ version: 'v1.35.0' })

const deferred: Case = async (twin) => {
  await twin.setReports({ machine: () => poolReport() })
  await createPoolTopology(twin, annotated('p', 'defer-upgrade'), poolTopology('q'))
  await twin.patch(Cluster, clusterName, upgrade)
  await twin.settle('the upgrade of one pool is deferred', reports('MachinePoolsUpgradeDeferred', 'MachinePool'))
  await patchPools(twin, poolTopology('p'), poolTopology('q'))
  await twin.settle('the upgrade is no longer deferred', isReconciled)
}

const held: Case = async (twin) => {
  await twin.setReports({ machine: () => poolReport() })
  await createPoolTopology(twin, annotated('p', 'hold-upgrade-sequence'), poolTopology('q'))
  await twin.patch(Cluster, clusterName, upgrade)
  await twin.settle('the upgrade of two pools is on hold', reports('MachinePoolsUpgradeDeferred'))
  await patchPools(twin, poolTopology('p'), poolTopology('q'))
  await twin.settle('the upgrade is no longer on hold', isReconciled)
}

const versionOf = ({ spec }: MachinePool) => spec.template.spec.version

/** Each pool is upgrading until the Node of its machine has the new version. */
const upgrading: Case = async (twin) => {
  const poolOf = ({ metadata }: KubeObject) => metadata.labels?.['topology.cluster.x-k8s.io/pool-name'] ?? ''
  await twin.setReports({ machine: (object) => poolReport(poolOf(object)) })
  await createPoolTopology(twin, poolTopology('p', { replicas: 1 }), poolTopology('q', { replicas: 1 }))
  await registerPoolNodes(twin, 'v1.34.0', 'p', 'q')
  const hasNodes = (objects: readonly KubeObject[]) =>
    objects
      .filter(({ kind }) => kind === 'MachinePool')
      .every((object) => (object as { status?: { nodeRefs?: object[] } }).status?.nodeRefs?.length === 1)
  await twin.settle('both pools have a Node', hasNodes)
  await twin.patch(Cluster, clusterName, upgrade)
  await twin.settle('the first pool is upgrading', reports('ClusterUpgrading', 'MachinePool'))
  await upgradeNode(twin, 'p', 'v1.35.0')
  await twin.touch(Cluster, clusterName)
  await twin.settle('the second pool is upgrading', (objects) =>
    objects.every((object) => object.kind !== 'MachinePool' || versionOf(object as MachinePool) === 'v1.35.0'),
  )
  await upgradeNode(twin, 'q', 'v1.35.0')
  await twin.touch(Cluster, clusterName)
  await twin.settle('both pools are upgraded', isReconciled)
}

const createdLater: Case = async (twin) => {
  await twin.setReports({ machine: () => poolReport() })
  await createPoolTopology(twin, poolTopology('p'))
  await twin.setReports({ controlPlane: noReport })
  await twin.patch(Cluster, clusterName, upgrade)
  await twin.settle('the pool waits for the control plane', reports('ClusterUpgrading', 'pending upgrade'))
  await patchPools(twin, poolTopology('p'), poolTopology('q'), poolTopology('r'))
  await twin.settle('the creation of two pools is deferred', reports('ClusterUpgrading', 'creation deferred'))
  await patchPools(twin, poolTopology('p', { replicas: 1, metadata: { labels: { tier: 'one' } } }), poolTopology('q'))
  await twin.settle('a pool changes while its upgrade is pending')
}

const poolSelector = (kind: string) => selector(kind, { machinePoolClass: { names: ['po*'] } })
const builtins = (...names: readonly string[]) =>
  names.map((name, index) => set(`b${index}`, { valueFrom: { variable: `builtin.machinePool.${name}` } }))

const patchedPools: Case = async (twin) => {
  await twin.setReports({ machine: () => poolReport() })
  const definitions = [
    { selector: poolSelector('StubConfigTemplate'), jsonPatches: builtins('version', 'class', 'topologyName', 'replicas') },
    {
      selector: poolSelector('StubMachineTemplate'),
      jsonPatches: [
        set('zone', { valueFrom: { variable: 'zone' } }),
        set('text', { valueFrom: { template: '{{ .builtin.machinePool.topologyName }} in {{ .zone }}' } }),
        set('labels', { valueFrom: { variable: 'builtin.machinePool.metadata.labels' } }),
      ],
    },
  ]
  const { spec } = patched(patch('p', definitions))
  const zone = { variables: { overrides: [{ name: 'zone', value: 'b' }] } }
  const tier = { metadata: { labels: { tier: 'one' } } }
  await createTopology(
    twin,
    { spec: spec!, workers: { machinePools: [poolClass()] } },
    {
      workers: [],
      topology: { ...inZone('a').topology, ...pools(poolTopology('p', tier), poolTopology('q', { ...zone, ...tier })) },
    },
  )
  await twin.patch(Cluster, clusterName, topology(values(['zone', 'b'])))
  await twin.settle('the zone changes', isReconciled)
  await patchPools(twin, poolTopology('p', { ...tier, replicas: 1 }))
  await twin.settle('a pool is scaled up, and another is removed')
}

const named: Case = async (twin) => {
  await twin.setReports({ machine: () => poolReport() })
  const naming = { template: '{{ .machinePool.topologyName }}-of-{{ .cluster.name }}-pool' }
  // A name of more than 63 characters is cut to 58, and gets a random suffix. With this topology name, the cut name ends with a hyphen: the
  // comparison recognizes a random suffix only after a hyphen.
  const longName = `${'x'.repeat(55)}-y`
  await createTopology(
    twin,
    { workers: { machinePools: [poolClass({ naming })] } },
    { workers: [], topology: pools(poolTopology('p'), poolTopology(longName)) },
  )
  await twin.settle('the pools are created', (objects) => objects.some(({ metadata }) => metadata.name === 'p-of-c-pool'))
}

const fields = {
  deletion: { nodeDrainTimeoutSeconds: 5, nodeVolumeDetachTimeoutSeconds: 6, nodeDeletionTimeoutSeconds: 7 },
  failureDomains: ['a', 'b'],
  minReadySeconds: 3,
}
const metadata = (letter: string) => ({
  metadata: { labels: { [letter]: letter, both: letter }, annotations: { [letter]: letter, both: letter } },
})

const withFields: Case = async (twin) => {
  await twin.setReports({ machine: () => poolReport() })
  await createTopology(
    twin,
    { workers: { machinePools: [poolClass({ ...fields, ...metadata('c') })] } },
    { workers: [], topology: pools(poolTopology('p', metadata('t'))) },
  )
  const own = { deletion: { nodeDrainTimeoutSeconds: 9 }, failureDomains: ['c'], minReadySeconds: 0 }
  await patchPools(twin, poolTopology('p', own))
  await twin.settle('the Cluster has other values')
  await patchPools(twin, poolTopology('p'))
  await twin.settle('the values of the class apply again')
  await twin.patch(ClusterClass, 'quick', { spec: aClass({ workers: { machinePools: [poolClass()] } }).spec })
  await twin.settle('the class has no values')
}

const rotated: Case = async (twin) => {
  await twin.setReports({ machine: () => poolReport() })
  await createPoolTopology(twin, poolTopology('p'))
  for (const kind of [stub.configTemplate, stub.machineTemplate]) {
    await twin.patch(kind, 'quick-worker', { spec: { template: { spec: { made: 'anew' }, metadata: { labels: { l: 'm' } } } } })
    await twin.touch(Cluster, clusterName)
    await twin.settle(`the ${kind.kind} changes`)
  }
}

export const topologyPoolCases: Cases = {
  'topology-pools-deferred': deferred,
  'topology-pools-held': held,
  'topology-pools-upgrading': upgrading,
  'topology-pools-created-later': createdLater,
  'topology-pools-patched': patchedPools,
  'topology-pools-naming': named,
  'topology-pools-fields': withFields,
  'topology-pools-rotated': rotated,
}
