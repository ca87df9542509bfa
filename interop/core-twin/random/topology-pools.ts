/**
 * Random cases of Clusters with a topology that has MachinePools. The pool `a` consists of the Node `a`, and so on. No case deletes a Node of
 * a pool, because upstream's reconcile of the topology fails when such a Node is missing.
 */
import { Cluster, ClusterClass, MachinePool } from '@capstan/api'
import { poolClass, poolReport, poolTopology, registerPoolNodes } from '../cases/topology-pools.ts'
import * as managed from '../cases/topology.ts'
import { clusterName } from '../objects.ts'
import { everythingReady, hostedControlPlane, noReport } from '../providers.ts'
import { type Behaviour, nodeInfoOf, reportNodeStatus } from '../side.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Twin } from '../twin.ts'
import { clusterPause } from './common-changes.ts'
import { type Choose, first, patchAll, perform, type RandomChange, text } from './story.ts'
import { annotationChange, hookChange, letHooksProceed, randomMetadata, variablesChange, versionChange } from './topology.ts'

const poolNames = ['a', 'b', 'c']

const topologyAnnotation = (key: string) => ({
  metadata: { annotations: { [`topology.cluster.x-k8s.io/${key}`]: '' } },
})

/** Returns the topology of a MachinePool, with random fields. */
const randomPoolTopology = (choose: Choose, name: string) =>
  poolTopology(name, {
    replicas: choose(undefined, 0, 1, 2),
    metadata: choose(
      randomMetadata(choose),
      topologyAnnotation('defer-upgrade').metadata,
      topologyAnnotation('hold-upgrade-sequence').metadata,
    ),
    ...randomFields(choose),
    variables: choose(undefined, undefined, { overrides: [{ name: 'zone', value: choose('b', 'c') }] }),
  })

/** Returns random values of fields that exist both in the class and in the topology of a pool. */
const randomFields = (choose: Choose) => ({
  deletion: choose(undefined, {
    nodeDrainTimeoutSeconds: choose(1, 2),
    nodeVolumeDetachTimeoutSeconds: choose(1, undefined),
    nodeDeletionTimeoutSeconds: choose(0, 3),
  }),
  failureDomains: choose(undefined, ['x'], ['y', 'x']),
  minReadySeconds: choose(undefined, 0, 3),
})

function randomClass(choose: Choose): managed.ClassOptions {
  const builtin = (path: string, name: string) => managed.set(path, { valueFrom: { variable: `builtin.machinePool.${name}` } })
  const toPools = (kind: string, ...patches: readonly object[]) => ({
    selector: managed.selector(kind, { machinePoolClass: { names: [choose('pool', 'po*', '*')] } }),
    jsonPatches: [managed.set('zone', { valueFrom: { variable: 'zone' } }), ...patches],
  })
  const fields = [
    builtin('version', choose('version', 'class', 'topologyName')),
    managed.set('replicas', {
      valueFrom: {
        template: '{{ if hasKey .builtin.machinePool "replicas" }}{{ .builtin.machinePool.replicas }}{{ else }}none{{ end }}',
      },
    }),
  ]
  return {
    spec: {
      variables: [managed.variable('zone', { type: 'string', default: choose('a', 'b') })],
      patches: choose<readonly object[]>(
        [managed.patch('none', managed.toControlPlane(managed.set('made', { value: 'anew' })))],
        [managed.patch('machines', [toPools('StubMachineTemplate', ...choose<readonly object[]>([], fields))])],
        [managed.patch('configs', [toPools('StubConfigTemplate', ...fields)], { enabledIf: '{{ eq .zone "b" }}' })],
      ),
      kubernetesVersions: choose(undefined, undefined, ['v1.34.0', 'v1.35.0', 'v1.36.0']),
    },
    workers: {
      machinePools: [
        poolClass({
          metadata: randomMetadata(choose),
          ...randomFields(choose),
          naming: choose(undefined, { template: '{{ .cluster.name }}-pool-{{ .machinePool.topologyName }}-{{ .random }}' }),
        }),
      ],
    },
  }
}

const pools = (...machinePools: readonly object[]) => managed.topology({ workers: { machinePools } })

const poolChanges: readonly RandomChange[] = [
  (choose) => {
    const machinePools = choose(['a'], ['a', 'b'], ['b'], ['a', 'b', 'c'], ['c', 'a'], []).map((name) =>
      randomPoolTopology(choose, name),
    )
    return [`pools ${text(machinePools)}`, (twin) => twin.patch(Cluster, clusterName, pools(...machinePools))]
  },
  (choose) => {
    const to = managed.aClass(randomClass(choose))
    return [
      `the class ${text(to.spec)}`,
      (twin) =>
        twin.patch(ClusterClass, 'quick', { spec: { ...to.spec, kubernetesVersions: to.spec.kubernetesVersions ?? null } }),
    ]
  },
  (choose) => {
    const kind = choose(stub.machineTemplate, stub.configTemplate)
    const fields = choose(
      { spec: { made: choose('anew', 'again') } },
      { metadata: { labels: { 'from-template': choose('no', null) }, annotations: { note: choose('n', null) } } },
    )
    return [
      `template ${kind.kind} ${text(fields)}`,
      async (twin) => {
        await twin.patch(kind, 'quick-worker', { spec: { template: fields } })
        await twin.touch(Cluster, clusterName)
      },
    ]
  },
  variablesChange,
  annotationChange,
  clusterPause,
  (choose) => {
    const controlPlane = choose(hostedControlPlane, hostedControlPlane, noReport)
    const report = controlPlane === noReport ? 'nothing' : 'ready'
    return [`the control plane reports ${report}`, (twin) => twin.setReports({ controlPlane })]
  },
  (choose) => {
    const body = {
      metadata: { labels: { x: choose('mine', null) }, annotations: { y: choose('mine', null) } },
      spec: {
        failureDomains: choose(['mine'], null),
        template: {
          metadata: { labels: { y: choose('mine', null) } },
          spec: { version: choose('v1.33.0', 'v1.35.0'), deletion: { nodeDrainTimeoutSeconds: choose(9, null) } },
        },
      },
    }
    return [
      `a user changes a MachinePool ${text(body)}`,
      async (twin) => {
        await twin.patch(MachinePool, first, body)
        await twin.touch(Cluster, clusterName)
      },
    ]
  },
  (choose) => {
    const replicas = choose(0, 1, 2)
    return [`a user scales a MachinePool to ${replicas}`, (twin) => twin.patch(MachinePool, first, { spec: { replicas } })]
  },
  () => ['a user deletes a MachinePool', (twin) => twin.delete(MachinePool, first)],
  (choose) => {
    const finalizers = choose(['twin.capstan.dev/hold'], null)
    return [
      `the objects of every pool have finalizers ${text(finalizers)}`,
      async (twin) => {
        // Both kinds get the finalizers, because upstream reports an error while a pool that is being deleted has only its bootstrap config
        // or only its infrastructure object.
        for (const kind of [stub.config, stub.machine]) await patchAll(twin, kind, { metadata: { finalizers } })
      },
    ]
  },
  // A change that is listed several times is chosen more often.
  upgradedNodes,
  upgradedNodes,
]

/** Returns a change after which the kubelets of the first Nodes report the versions of their pools. */
function upgradedNodes(choose: Choose): ReturnType<RandomChange> {
  const names = poolNames.slice(0, choose(1, 2, 3))
  return [
    `the Nodes ${names.join(', ')} have the versions of their pools`,
    async (twin) => {
      await twin.inWorkload(clusterName, async (client, side) => {
        for (const name of names) {
          const version = side
            .objects(twin.namespace, MachinePool)
            .find(({ metadata }) => metadata.labels?.['topology.cluster.x-k8s.io/pool-name'] === name)?.spec.template.spec.version
          if (version === undefined) continue
          await reportNodeStatus(client, name, { nodeInfo: nodeInfoOf(version) })
        }
      })
      await twin.settle('the Nodes have the versions of their pools')
      await twin.touch(Cluster, clusterName)
    },
  ]
}

/** Reports the Node of a pool for its infrastructure machine pool. Other infrastructure machines are ready. */
const reportPool: Behaviour = (object, objects) => {
  const name = object.metadata.labels?.['topology.cluster.x-k8s.io/pool-name']
  return name === undefined ? everythingReady.machine(object, objects) : poolReport(name)
}

/** Creates a Cluster with the pool `a`, and registers the Nodes of all pools. */
async function createPools(twin: Twin, choose: Choose): Promise<void> {
  await twin.setReports({ controlPlane: hostedControlPlane, machine: reportPool })
  const machinePools = [randomPoolTopology(choose, 'a')]
  await managed.createTopology(twin, randomClass(choose), { workers: [], topology: { workers: { machinePools } } })
  for (const name of poolNames) await registerPoolNodes(twin, 'v1.34.0', name)
  await twin.settle('the Nodes have joined')
}

/** A case with random changes of a Cluster with a topology of MachinePools. At the end, the Cluster is deleted. */
export const randomTopologyPools =
  (choose: Choose): Case =>
  async (twin) => {
    await createPools(twin, choose)
    await perform(twin, choose, [...poolChanges, ...poolChanges, versionChange, versionChange])
    await twin.delete(Cluster, clusterName)
    await twin.settle('the Cluster is being deleted')
  }

/**
 * A case with random changes of a Cluster with a topology of MachinePools, whose lifecycle hooks block and fail at random. At the end, all
 * hooks proceed, and the Cluster is deleted.
 */
export const randomPoolHooks =
  (choose: Choose): Case =>
  async (twin) => {
    await twin.registerExtension()
    await createPools(twin, choose)
    await perform(twin, choose, [hookChange, hookChange, hookChange, versionChange, versionChange, upgradedNodes, ...poolChanges])
    letHooksProceed(twin)
    await twin.delete(Cluster, clusterName)
    await twin.settle('all hooks proceed, and the Cluster is being deleted')
  }
