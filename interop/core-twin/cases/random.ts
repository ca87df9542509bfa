/**
 * Cases with random changes, for states that nobody has thought of. The seed and the number in the name of a case determine it, so that it
 * can be run again. Changes whose result depends on timing in upstream are left out: of the replicas of a MachineSet, of the label by which
 * a MachineSet selects a Machine, and the pause of a MachineSet.
 */
import { Cluster, ClusterClass, Machine, MachineDeployment, MachineHealthCheck, MachineSet } from '@capstan/api'
import { keyOf, type Kind, type KubeObject, type Random, seededRandom } from '@capstan/kube'
import { clusterName, machineDeployment, named } from '../objects.ts'
import { everythingReady, hostedControlPlane, noReport } from '../providers.ts'
import type { Behaviour } from '../side.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { healthCheck, reportNodesReady } from './health-check.ts'
import { createReadyCluster } from './machine.ts'
import { strategy } from './machine-deployment.ts'
import { createWorkerTemplates } from './machine-set.ts'
import * as managed from './topology.ts'

/** Number of changes in a case. */
const Changes = 7

/** Returns `count` cases for a seed: Clusters of a topology, and MachineDeployments without a topology, in turn. */
export function randomCases(seed: number, count: number): Cases {
  const caseOf = (number: number): [string, Case] => [
    `random-${seed}-${number}`,
    (number % 2 === 0 ? randomTopology : randomDeployment)(seededRandom(seed * 10_000 + number)),
  ]
  return Object.fromEntries(Array.from({ length: count }, (_, number) => caseOf(number)))
}

/** A change with its name, which contains all random values. */
type Change = readonly [name: string, apply: (twin: Twin) => Promise<void>]
type RandomChange = (choose: Choose) => Change

type Choose = <T>(...values: readonly T[]) => T
const chooser =
  (random: Random): Choose =>
  (...values) =>
    values[Math.floor(random.next() * values.length)]!

/** Performs random changes, each after both sides are idle. */
async function perform(twin: Twin, choose: Choose, changes: readonly RandomChange[]): Promise<void> {
  for (let number = 1; number <= Changes; number++) {
    const [name, apply] = choose(...changes)(choose)
    await apply(twin)
    await twin.settle(`${number}: ${name}`)
  }
}

/** Returns the object that was created first. */
const first = <T extends KubeObject>(objects: readonly T[]): T | undefined =>
  objects.toSorted((a, b) => (a.metadata.creationTimestamp! < b.metadata.creationTimestamp! ? -1 : 1))[0]

/**
 * Patches all objects of a kind. Which of several equal Machines a controller deletes depends on their random names, so that a change of
 * one of them could leave different states.
 */
const patchAll = (twin: Twin, kind: Kind, body: object): Promise<void> =>
  twin.runOnBoth(`patch every ${kind.kind}`, async (client) => {
    const { items } = await client.list(kind, { namespace: twin.namespace })
    for (const object of items) await client.patch(kind, keyOf(object), { type: 'merge', body }, { fieldManager: 'twin' })
  })

const annotation = (key: string, value: string | null) => ({ metadata: { annotations: { [key]: value } } })
const Paused = 'cluster.x-k8s.io/paused'
const text = (value: unknown): string => JSON.stringify(value)

const reportOf = (name: string, behaviour: Behaviour | undefined): readonly [string, Behaviour] => [name, behaviour ?? noReport]

const withStatus =
  (behaviour: Behaviour, status: object): Behaviour =>
  (object, objects) => {
    const report = behaviour(object, objects)
    return report && { ...report, status: { ...report.status, ...status } }
  }

const notReady = {
  conditions: [
    { type: 'Ready', status: 'False', reason: 'Twin', message: 'not ready', lastTransitionTime: '2026-01-01T00:00:00Z' },
  ],
}

/** Changes that apply to every Cluster with MachineDeployments. */
const commonChanges: readonly RandomChange[] = [
  (choose) => {
    const paused = choose(true, null)
    return [`the Cluster has paused ${paused}`, (twin) => twin.patch(Cluster, clusterName, { spec: { paused } })]
  },
  (choose) => {
    const value = choose('', null)
    const kind = choose<Kind>(MachineDeployment, Machine)
    return [`every ${kind.kind} has the pause annotation ${value}`, (twin) => patchAll(twin, kind, annotation(Paused, value))]
  },
  (choose) => {
    const [name, machine] = choose(
      reportOf('ready', everythingReady.machine),
      reportOf('nothing', undefined),
      reportOf('a condition', withStatus(everythingReady.machine, notReady)),
      reportOf('a failure domain', withStatus(everythingReady.machine, { failureDomain: 'fd' })),
    )
    return [`infrastructure reports ${name}`, (twin) => twin.setReports({ machine })]
  },
  (choose) => {
    const [name, config] = choose(
      reportOf('ready', everythingReady.config),
      reportOf('nothing', undefined),
      reportOf('a condition', withStatus(everythingReady.config, notReady)),
    )
    return [`bootstrap reports ${name}`, (twin) => twin.setReports({ config })]
  },
  (choose) => {
    const [name, controlPlane] = choose(
      reportOf('ready', hostedControlPlane),
      reportOf('ready', hostedControlPlane),
      reportOf('nothing', undefined),
      reportOf('a condition', withStatus(hostedControlPlane, notReady)),
    )
    return [`the control plane reports ${name}`, (twin) => twin.setReports({ controlPlane })]
  },
  () => ['a Machine is deleted', (twin) => twin.delete(Machine, first)],
  (choose) => {
    const key = choose('delete-machine', 'remediate-machine', 'skip-remediation')
    const value = choose('', null)
    return [`every Machine has ${key} ${value}`, (twin) => patchAll(twin, Machine, annotation(`cluster.x-k8s.io/${key}`, value))]
  },
  (choose) => {
    const ready = choose('False', 'Unknown', 'True')
    return [`every Node reports Ready ${ready}`, (twin) => reportNodesReady(twin, ready, Infinity)]
  },
  (choose) => {
    const labels = { mine: choose('a', 'b', null), 'node.cluster.x-k8s.io/mine': choose('a', 'b', null) }
    const kind = choose<Kind>(MachineDeployment, MachineSet, Machine)
    return [
      `a user sets labels of every ${kind.kind} to ${text(labels)}`,
      (twin) => patchAll(twin, kind, { metadata: { labels } }),
    ]
  },
  (choose) => {
    const deletion = { nodeDrainTimeoutSeconds: choose(1, 2, null), nodeDeletionTimeoutSeconds: choose(1, 2, null) }
    return [
      `a user sets deletion of every Machine to ${text(deletion)}`,
      (twin) => patchAll(twin, Machine, { spec: { deletion } }),
    ]
  },
  (choose) => {
    const finalizers = choose(['twin.capstan.dev/hold'], null)
    return [
      `every infrastructure machine has finalizers ${text(finalizers)}`,
      (twin) => patchAll(twin, stub.machine, { metadata: { finalizers } }),
    ]
  },
]

const name = 'md'
const spec = (fields: object) => (twin: Twin) => twin.patch(MachineDeployment, name, { spec: fields })

const deploymentChanges: readonly RandomChange[] = [
  (choose) => {
    const replicas = choose(0, 1, 2, 3, 4)
    return [`replicas ${replicas}`, spec({ replicas })]
  },
  (choose) => {
    const replicas = choose(1, 2, 3)
    const version = choose('v1.35.0', 'v1.35.1', 'v1.35.2')
    return [`version ${version} and replicas ${replicas}`, spec({ replicas, template: { spec: { version } } })]
  },
  (choose) => {
    const version = choose('v1.34.0', 'v1.35.1', 'v1.35.2', 'v1.36.0')
    return [`version ${version}`, spec({ template: { spec: { version } } })]
  },
  (choose) => {
    const paused = choose(true, false)
    return [`paused ${paused}`, spec({ paused })]
  },
  (choose) => {
    const rollingUpdate = {
      maxSurge: choose<number | string>(0, 1, 2, '50%'),
      maxUnavailable: choose<number | string>(0, 1, '50%'),
    }
    const rollout = choose(
      strategy('RollingUpdate', rollingUpdate),
      strategy('RollingUpdate', rollingUpdate),
      strategy('OnDelete'),
    )
    return [`strategy ${text(rollout)}`, spec(rollout)]
  },
  (choose) => {
    const metadata = {
      labels: { zone: choose('a', 'b', null), 'node.cluster.x-k8s.io/zone': choose('a', 'b', null) },
      annotations: { zone: choose('a', 'b', null) },
    }
    return [`metadata of the template ${text(metadata)}`, spec({ template: { metadata } })]
  },
  (choose) => {
    const fields = {
      deletion: choose(null, { nodeDrainTimeoutSeconds: choose(1, 2), nodeVolumeDetachTimeoutSeconds: choose(1, 2) }),
      readinessGates: choose(null, [{ conditionType: 'Extra' }]),
      taints: choose(null, [{ key: 'k', effect: 'NoSchedule', propagation: choose('Always', 'OnInitialization') }]),
      minReadySeconds: choose(0, 1, null),
    }
    return [`in-place fields ${text(fields)}`, spec({ template: { spec: fields } })]
  },
  (choose) => {
    const order = choose('Oldest', 'Newest', null)
    const maxInFlight = choose<number | string | null>(1, '50%', null)
    return [
      `order ${order}, maxInFlight ${maxInFlight}`,
      spec({ deletion: { order }, remediation: maxInFlight === null ? null : { maxInFlight } }),
    ]
  },
  (choose) => {
    const after = choose('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z', null)
    return [`rollout after ${after}`, spec({ rollout: { after } })]
  },
  (choose) => {
    const template = choose('worker', 'other')
    const part = choose(
      { bootstrap: { configRef: { name: template } } },
      { infrastructureRef: { name: template } },
      { bootstrap: { configRef: { name: template } }, infrastructureRef: { name: template } },
    )
    return [`templates ${text(part)}`, spec({ template: { spec: part } })]
  },
  (choose) => {
    const checks = {
      nodeStartupTimeoutSeconds: 300,
      unhealthyNodeConditions: [{ type: 'Ready', status: choose('False', 'Unknown'), timeoutSeconds: 0 }],
    }
    const unhealthyLessThanOrEqualTo = choose<number | string>(0, 1, '100%')
    const selector = { matchLabels: { deployment: name } }
    const check = healthCheck({ selector, checks, remediation: { triggerIf: { unhealthyLessThanOrEqualTo } } })
    return [`a health check ${text(check.spec)}`, (twin) => twin.create(MachineHealthCheck, check as never)]
  },
  () => ['the health check is deleted', (twin) => twin.delete(MachineHealthCheck, 'mhc')],
  () => ['a MachineSet is deleted', (twin) => twin.delete(MachineSet, first)],
]

const randomDeployment =
  (random: Random): Case =>
  async (twin) => {
    const choose = chooser(random)
    await twin.setReports({ controlPlane: hostedControlPlane })
    await createReadyCluster(twin)
    await createWorkerTemplates(twin)
    for (const kind of [stub.configTemplate, stub.machineTemplate])
      await twin.create(kind, named('other', { spec: { template: { spec: { made: 'from the other template' } } } }))
    await twin.create(MachineDeployment, machineDeployment(name, { replicas: choose(1, 2, 3) }))
    await twin.settle('the MachineDeployment is created')
    await perform(twin, choose, [...commonChanges, ...deploymentChanges, ...deploymentChanges])
    await twin.delete(MachineDeployment, name)
    await twin.settle('the MachineDeployment is deleted')
  }

const checks = {
  nodeStartupTimeoutSeconds: 300,
  unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds: 0 }],
}

/** Returns random metadata of a class or topology. */
const randomMetadata = (choose: Choose) => choose(undefined, managed.metadata('x'), managed.metadata('y'))

/** Returns random fields of workers, as a topology has them. */
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

/** Returns random fields of a ClusterClass with two patches. */
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

const topologyChanges: readonly RandomChange[] = [
  (choose) => {
    const version = choose('v1.34.0', 'v1.34.1', 'v1.35.0', 'v1.36.0')
    return [`version ${version}`, (twin) => twin.patch(Cluster, clusterName, managed.topology({ version }))]
  },
  (choose) => {
    const version = choose('v1.34.1', 'v1.35.0', 'v1.36.0')
    return [`version ${version}`, (twin) => twin.patch(Cluster, clusterName, managed.topology({ version }))]
  },
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
    return [`the class ${text(to.spec)}`, (twin) => twin.patch(ClusterClass, 'quick', { spec: withoutOptional(to.spec) })]
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
  (choose) => {
    const variables = choose([], [{ name: 'zone', value: choose('a', 'b', 'c') }], [{ name: 'none', value: 1 }])
    return [`variables ${text(variables)}`, (twin) => twin.patch(Cluster, clusterName, managed.topology({ variables }))]
  },
  (choose) => {
    const key = choose('topology.cluster.x-k8s.io/upgrade-concurrency', 'before-upgrade.hook.cluster.cluster.x-k8s.io/wait')
    const value = choose('1', '2', null)
    return [`annotation ${key} ${value}`, (twin) => twin.patch(Cluster, clusterName, annotation(key, value))]
  },
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

/** Removes optional fields of a ClusterClass that `to` does not have, which a merge patch would keep. */
const withoutOptional = (to: ClusterClass['spec']): object => ({
  ...to,
  kubernetesVersions: to.kubernetesVersions ?? null,
  controlPlane: { metadata: null, healthCheck: null, deletion: null, naming: null, ...definedFields(to.controlPlane) },
})
const definedFields = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

const randomTopology =
  (random: Random): Case =>
  async (twin) => {
    const choose = chooser(random)
    await twin.setReports({ controlPlane: hostedControlPlane })
    await managed.createTopology(twin, randomClass(choose), { workers: [randomWorker(choose, 'a')] })
    await perform(twin, choose, [...commonChanges, ...topologyChanges, ...topologyChanges])
    await twin.delete(Cluster, clusterName)
    await twin.settle('the Cluster is being deleted')
  }
