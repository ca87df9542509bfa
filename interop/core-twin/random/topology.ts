/** Random cases of Clusters with a topology that has MachineDeployments: random changes, and hooks with random responses. */
import { Cluster, ClusterClass, MachineDeployment, MachineHealthCheck } from '@capstan/api'
import { fail, holdFor } from '@capstan/extension'
import { keyOf } from '@capstan/kube'
import type { ScriptedResponse } from '../../runtime-extension/extension-host.ts'
import { upgradeHooks } from '../../shared/hook-names.ts'
import * as managed from '../cases/topology.ts'
import { clusterName } from '../objects.ts'
import { hostedControlPlane } from '../providers.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Twin } from '../twin.ts'
import { commonChanges } from './common-changes.ts'
import { annotation, type Choose, first, perform, type RandomChange, text } from './story.ts'

const checks = {
  nodeStartupTimeoutSeconds: 300,
  unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds: 0 }],
}

/** Returns random metadata for a class or topology, or `undefined`. */
export const randomMetadata = (choose: Choose) => choose(undefined, managed.metadata('x'), managed.metadata('y'))

/** Returns the topology of a MachineDeployment, with random fields. */
const randomWorker = (choose: Choose, workerName: string) =>
  managed.worker(workerName, {
    replicas: choose(undefined, 0, 1, 2),
    metadata: randomMetadata(choose),
    rollout: choose(
      undefined,
      { strategy: { type: 'OnDelete' } },
      { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 2 } } },
    ),
    deletion: choose(undefined, { order: 'Oldest', nodeDrainTimeoutSeconds: 2 }),
    healthCheck: choose(undefined, { enabled: false }, { checks }),
    variables: choose(undefined, undefined, { overrides: [{ name: 'zone', value: 'b' }] }),
    readinessGates: choose(undefined, undefined, [{ conditionType: 'Extra' }]),
    taints: choose(undefined, undefined, [{ key: 'k', effect: 'NoSchedule', propagation: 'Always' }]),
  })

/** Returns random fields of a ClusterClass with one or two patches. */
function randomClass(choose: Choose): managed.ClassOptions {
  const zone = (...patches: readonly object[]) => managed.patch('zones', managed.toControlPlane(...patches))
  const toWorkers = [
    {
      selector: managed.selector('StubMachineTemplate', { machineDeploymentClass: { names: ['worker'] } }),
      jsonPatches: [
        managed.set('zone', { valueFrom: { variable: 'zone' } }),
        managed.set('version', {
          valueFrom: { variable: choose('builtin.machineDeployment.version', 'builtin.cluster.topology.version') },
        }),
        managed.set('replicas', {
          valueFrom: {
            template:
              '{{ if hasKey .builtin.machineDeployment "replicas" }}{{ .builtin.machineDeployment.replicas }}{{ else }}none{{ end }}',
          },
        }),
      ],
    },
  ]
  return {
    spec: {
      variables: [managed.variable('zone', { type: 'string', default: choose('a', 'b') })],
      patches: choose<readonly object[]>(
        [zone(managed.set('zone', { valueFrom: { variable: 'zone' } }))],
        [managed.patch('workers', toWorkers)],
        [
          zone(managed.set('zone', { valueFrom: { variable: 'zone' } })),
          managed.patch('workers', toWorkers, { enabledIf: '{{ eq .zone "b" }}' }),
        ],
      ),
      kubernetesVersions: choose(undefined, undefined, ['v1.34.0', 'v1.35.0', 'v1.36.0']),
    },
    controlPlane: {
      metadata: randomMetadata(choose),
      healthCheck: choose(undefined, { checks }),
      deletion: choose(undefined, { nodeDrainTimeoutSeconds: 1 }),
      naming: choose(undefined, { template: '{{ .cluster.name }}-control-{{ .random }}' }),
    },
    worker: {
      metadata: randomMetadata(choose),
      healthCheck: choose(undefined, { checks }),
      deletion: choose(undefined, { order: 'Newest', nodeDrainTimeoutSeconds: 1 }),
      rollout: choose(undefined, { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } }),
      failureDomain: choose(undefined, 'fd'),
    },
  }
}

export const versionChange: RandomChange = (choose) => {
  const version = choose('v1.34.0', 'v1.34.1', 'v1.35.0', 'v1.36.0')
  return [`version ${version}`, (twin) => twin.patch(Cluster, clusterName, managed.topology({ version }))]
}

export const variablesChange: RandomChange = (choose) => {
  const variables = choose([], [{ name: 'zone', value: choose('a', 'b', 'c') }], [{ name: 'none', value: 1 }])
  return [`variables ${text(variables)}`, (twin) => twin.patch(Cluster, clusterName, managed.topology({ variables }))]
}

/** Sets or removes an annotation of the Cluster that affects upgrades. */
export const annotationChange: RandomChange = (choose) => {
  const key = choose('topology.cluster.x-k8s.io/upgrade-concurrency', 'before-upgrade.hook.cluster.cluster.x-k8s.io/wait')
  const value = choose('1', '2', null)
  return [`annotation ${key} ${value}`, (twin) => twin.patch(Cluster, clusterName, annotation(key, value))]
}

const topologyChanges: readonly RandomChange[] = [
  versionChange,
  versionChange,
  (choose) => {
    const workers = choose(['a'], ['a', 'b'], ['b'], ['a', 'b', 'c'], []).map((workerName) => randomWorker(choose, workerName))
    return [`workers ${text(workers)}`, (twin) => twin.patch(Cluster, clusterName, managed.workers(...workers))]
  },
  (choose) => {
    const controlPlane = {
      replicas: choose(1, 2, 3),
      metadata: choose({ labels: { x: choose('x', null) } }, { annotations: { y: choose('y', null) } }),
      deletion: choose(null, { nodeDrainTimeoutSeconds: 3 }),
      healthCheck: choose(null, { enabled: true }, { enabled: false }, { checks }),
    }
    return [`control plane ${text(controlPlane)}`, (twin) => twin.patch(Cluster, clusterName, managed.topology({ controlPlane }))]
  },
  (choose) => {
    const to = managed.aClass(randomClass(choose))
    return [`the class ${text(to.spec)}`, (twin) => twin.patch(ClusterClass, 'quick', { spec: replacingSpec(to.spec) })]
  },
  (choose) => {
    const [kind, template] = choose(
      [stub.clusterTemplate, 'quick'] as const,
      [stub.controlPlaneTemplate, 'quick'] as const,
      [stub.machineTemplate, 'quick-control-plane'] as const,
      [stub.machineTemplate, 'quick-worker'] as const,
      [stub.configTemplate, 'quick-worker'] as const,
    )
    const fields = choose(
      { spec: { made: choose('anew', 'again') } },
      { metadata: { labels: { 'from-template': choose('no', null) } } },
    )
    return [
      `template ${kind.kind} ${template} ${text(fields)}`,
      async (twin) => {
        await twin.patch(kind, template, { spec: { template: fields } })
        await twin.touch(Cluster, clusterName)
      },
    ]
  },
  variablesChange,
  annotationChange,
  (choose) => {
    const labels = { mine: choose('a', null) }
    return [`labels of the Cluster ${text(labels)}`, (twin) => twin.patch(Cluster, clusterName, { metadata: { labels } })]
  },
  (choose) => {
    const body = {
      metadata: { labels: { x: choose('mine', null) } },
      spec: {
        template: {
          metadata: { labels: { y: choose('mine', null) } },
          spec: { version: choose('v1.33.0', 'v1.35.0'), deletion: { nodeDrainTimeoutSeconds: choose(9, null) } },
        },
      },
    }
    return [
      `a user changes a MachineDeployment ${text(body)}`,
      async (twin) => {
        await twin.patch(MachineDeployment, first, body)
        await twin.touch(Cluster, clusterName)
      },
    ]
  },
  (choose) => {
    const replicas = choose(0, 1, 2)
    return [
      `a user scales a MachineDeployment to ${replicas}`,
      (twin) => twin.patch(MachineDeployment, first, { spec: { replicas } }),
    ]
  },
  () => [
    'a user deletes every MachineHealthCheck',
    async (twin) => {
      await twin.runOnBoth('delete every MachineHealthCheck', async (client) => {
        const { items } = await client.list(MachineHealthCheck, { namespace: twin.namespace })
        for (const healthCheck of items) await client.delete(MachineHealthCheck, keyOf(healthCheck))
      })
      await twin.touch(Cluster, clusterName)
    },
  ],
]

/**
 * Returns the `spec` of a merge patch that changes the spec of a ClusterClass to `to`. Fields that `randomClass` leaves out at random are null
 * if `to` does not have them. Fields of worker classes need no null, because a merge patch replaces the whole list of worker classes.
 */
const replacingSpec = (to: ClusterClass['spec']): object => ({
  ...to,
  kubernetesVersions: to.kubernetesVersions ?? null,
  controlPlane: { metadata: null, healthCheck: null, deletion: null, naming: null, ...definedFields(to.controlPlane) },
})
const definedFields = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

/**
 * A case with random changes of a Cluster with a topology, and of its ClusterClass, templates and other objects. At the end the Cluster is being
 * deleted.
 */
export const randomTopology =
  (choose: Choose): Case =>
  async (twin) => {
    await twin.setReports({ controlPlane: hostedControlPlane })
    await managed.createTopology(twin, randomClass(choose), { workers: [randomWorker(choose, 'a')] })
    // A change that is listed twice is chosen more often.
    await perform(twin, choose, [...commonChanges, ...topologyChanges, ...topologyChanges])
    await twin.delete(Cluster, clusterName)
    await twin.settle('the Cluster is being deleted')
  }

/** Hooks whose responses `hookChange` changes. */
const changedHooks = ['AfterControlPlaneInitialized', ...upgradeHooks, 'BeforeClusterDelete']

/**
 * Makes a hook block, fail or, with the response `undefined`, proceed. Core ignores the retry time of the hook AfterControlPlaneInitialized,
 * which cannot block.
 */
export const hookChange: RandomChange = (choose) => {
  const hook = choose(...changedHooks)
  const response = choose<ScriptedResponse | undefined>(undefined, holdFor(1, `${hook} blocks`), fail(`${hook} fails`))
  return [
    `${hook} responds ${text(response)}`,
    async (twin) => {
      twin.setResponse(hook, response === undefined ? undefined : () => response)
      await twin.touch(Cluster, clusterName)
    },
  ]
}

/** Lets all hooks proceed that `hookChange` may have changed. */
export function letHooksProceed(twin: Twin): void {
  for (const hook of changedHooks) twin.setResponse(hook, undefined)
}

/** A case of a Cluster with a topology, whose hooks block and fail at random. At the end all hooks proceed, and the Cluster is deleted. */
export const randomHooks =
  (choose: Choose): Case =>
  async (twin) => {
    await twin.setReports({ controlPlane: hostedControlPlane })
    await twin.registerExtension()
    await managed.createTopology(twin, randomClass(choose), { workers: [randomWorker(choose, 'a')] })
    await perform(twin, choose, [hookChange, hookChange, hookChange, versionChange, versionChange, ...topologyChanges])
    letHooksProceed(twin)
    await twin.delete(Cluster, clusterName)
    await twin.settle('all hooks proceed, and the Cluster is deleted', (objects) =>
      objects.every(({ kind }) => kind !== 'Cluster'),
    )
  }
