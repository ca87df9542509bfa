/**
 * Cases of MachineHealthChecks.
 * Every case does the same with upstream's core and with Capstan's, and compares all objects after each step (`settle`).
 */
import { Cluster, Machine, MachineDeployment, MachineHealthCheck, MachineSet } from '@capstan/api'
import { type Client, getCondition, type KubeObject, Node, seconds, sleep, systemClock, timestamp } from '@capstan/kube'
import { cluster, clusterName, machine, machineDeployment, machineSet, named, longAgo, nodeCondition } from '../objects.ts'
import { noReport } from '../providers.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createReadyCluster } from './machine.ts'
import { createWorkerTemplates } from './machine-set.ts'
import { reportNodeStatus } from '../side.ts'

const selector = { matchLabels: { set: 'ms' } }
const checks = {
  nodeStartupTimeoutSeconds: 30,
  unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds: 0 }],
}

/** Returns the MachineHealthCheck `mhc`, by default for Machines with the label `set: ms`. */
export const healthCheck = (spec: object = {}, metadata: object = {}) => ({
  metadata: { name: 'mhc', ...metadata },
  spec: { clusterName, selector, checks, ...spec },
})

/** Creates a MachineSet with running Machines, and a health check. */
async function createCheckedMachines(twin: Twin, spec: object = {}, replicas = 2, metadata: object = {}): Promise<void> {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { replicas }))
  await twin.settle('Machines run')
  await twin.create(MachineHealthCheck, healthCheck(spec, metadata) as never)
  await twin.settle('the Machines are checked')
}

const nodeStatus = (ready: string, time?: string) => ({
  conditions: [
    ...['MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => nodeCondition(type, 'False')),
    nodeCondition('Ready', ready, time === undefined ? {} : { time }),
  ],
})

/** Sets the status of the Ready condition of the first `count` Nodes to `ready`. `time`: time of the condition; default `longAgo`. */
export async function reportNodesReady(twin: Twin, ready: string, count = 1, time?: string): Promise<void> {
  await twin.inWorkload(clusterName, async (client) => {
    const { items } = await client.list(Node)
    for (const { metadata } of items.slice(0, count)) await reportNodeReady(client, metadata.name, ready, time)
  })
}

/** Sets the status of the Ready condition of a Node to `ready`, as its kubelet does. `time`: time of the condition; default `longAgo`. */
export const reportNodeReady = (client: Client, name: string, ready: string, time?: string): Promise<Node> =>
  reportNodeStatus(client, name, nodeStatus(ready, time))

/** As `reportNodesReady`, but while the health check is paused, so that each core evaluates all Nodes together. */
async function reportNodesReadyAtOnce(twin: Twin, ready: string, count: number): Promise<void> {
  await twin.patch(MachineHealthCheck, 'mhc', { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } })
  await twin.settle('checks are paused')
  await reportNodesReady(twin, ready, count)
  await twin.settle('the Nodes report while checks are paused')
  await twin.patch(MachineHealthCheck, 'mhc', { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } })
}

/** The Nodes of `count` checked Machines become not ready. */
const nodesNotReady =
  (spec: object = {}, replicas = 2, count = 1): Case =>
  async (twin) => {
    await createCheckedMachines(twin, spec, replicas)
    await reportNodesReadyAtOnce(twin, 'False', count)
    await twin.settle('the Nodes are not ready')
  }

const marked: Case = async (twin) => {
  await createCheckedMachines(twin)
  await twin.patch(Machine, ([first]) => first, { metadata: { annotations: { 'cluster.x-k8s.io/remediate-machine': '' } } })
  await twin.settle('a Machine is marked for remediation')
}

const notRemediated =
  (annotation: string): Case =>
  async (twin) => {
    await createCheckedMachines(twin)
    for (const index of [0, 1])
      await twin.patch(Machine, (objects) => objects.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))[index], {
        metadata: { annotations: { [`cluster.x-k8s.io/${annotation}`]: '' } },
      })
    // Without this step, a core could read the new status of a Node before the annotation of its Machine.
    await twin.settle('the Machines are annotated')
    await reportNodesReady(twin, 'False', 2)
    await twin.settle('the Machines are not remediated')
  }

const nodeGone: Case = async (twin) => {
  await createCheckedMachines(twin, { remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 0 } } })
  await twin.inWorkload(clusterName, async (client) => {
    const { items } = await client.list(Node)
    await client.delete(Node, { name: items[0]!.metadata.name })
  })
  await twin.settle('a Node is deleted')
}

const healthyAgain: Case = async (twin) => {
  await createCheckedMachines(twin, { remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 0 } } })
  await reportNodesReadyAtOnce(twin, 'False', 2)
  await twin.settle('Machines are unhealthy, but remediation is not allowed')
  await reportNodesReadyAtOnce(twin, 'True', 2)
  await twin.settle('the Machines are healthy again')
}

const external =
  (withTemplate: boolean): Case =>
  async (twin) => {
    if (withTemplate) await twin.create(stub.remediationTemplate, named('r', { spec: { template: { spec: { how: 'x' } } } }))
    const templateRef = { apiVersion: `${stub.group}/v1`, kind: 'StubRemediationTemplate', name: 'r' }
    await createCheckedMachines(twin, { remediation: { templateRef } }, 1)
    await reportNodesReady(twin, 'False')
    await twin.settle('the Machine is unhealthy')
    await reportNodesReady(twin, 'True')
    await twin.settle('the Machine is healthy again')
  }

const paused: Case = async (twin) => {
  await createCheckedMachines(twin, {}, 1, { annotations: { 'cluster.x-k8s.io/paused': '' } })
  await twin.patch(MachineHealthCheck, 'mhc', { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } })
  await twin.settle('the health check is resumed')
}

const machineConditions: Case = async (twin) => {
  const unhealthyMachineConditions = [{ type: 'NodeReady', status: 'False', timeoutSeconds: 0 }]
  await nodesNotReady({ checks: { nodeStartupTimeoutSeconds: 30, unhealthyMachineConditions } })(twin)
}

const bothConditions: Case = async (twin) => {
  const unhealthyMachineConditions = [{ type: 'NodeReady', status: 'False', timeoutSeconds: 0 }]
  await nodesNotReady({
    checks: { ...checks, unhealthyMachineConditions },
    remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 0 } },
  })(twin)
}

const noStartup: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.setReports({ machine: noReport })
  await twin.create(MachineSet, machineSet('ms', { replicas: 1 }))
  await twin.settle('the Machine does not start')
  const remediation = { triggerIf: { unhealthyLessThanOrEqualTo: 0 } }
  await twin.create(MachineHealthCheck, healthCheck({ remediation }) as never)
  await twin.settle('the startup timeout expires', (objects: readonly KubeObject[]) =>
    objects.some(
      (object) =>
        object.kind === 'Machine' && (object as Machine).status?.conditions?.some(({ type }) => type === 'HealthCheckSucceeded'),
    ),
  )
}

const matchesNothing: Case = async (twin) => {
  await createCheckedMachines(twin, { selector: { matchLabels: { set: 'another' } } }, 1)
  await twin.patch(MachineHealthCheck, 'mhc', { spec: { selector } })
  await twin.settle('the selector matches the Machine')
  await twin.delete(MachineHealthCheck, 'mhc')
  await twin.settle('the health check is deleted')
}

/** A Machine of a MachineDeployment that limits the number of concurrent remediations becomes unhealthy. */
const ofDeployment =
  (maxInFlight: number | string): Case =>
  async (twin) => {
    await createReadyCluster(twin)
    await createWorkerTemplates(twin)
    await twin.create(MachineDeployment, machineDeployment('md', { replicas: 2, remediation: { maxInFlight } }))
    await twin.settle('Machines run')
    await twin.create(MachineHealthCheck, healthCheck({ selector: { matchLabels: { deployment: 'md' } } }) as never)
    await twin.settle('the Machines are checked')
    await reportNodesReady(twin, 'False', 1)
    await twin.settle('a Node is not ready')
  }

const nodesNotReadyWithLimit = (triggerIf: object, count: number): Case => nodesNotReady({ remediation: { triggerIf } }, 2, count)

const noCluster: Case = async (twin) => {
  await twin.create(MachineHealthCheck, healthCheck() as never)
  await twin.settle('the Cluster does not exist')
}

/** Two health checks select the same Machines. */
const twoChecks: Case = async (twin) => {
  await createCheckedMachines(twin)
  const other = { ...healthCheck({ remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 0 } } }), metadata: { name: 'other' } }
  await twin.create(MachineHealthCheck, other as never)
  // The MachineSet is paused, so that the unhealthy Machine exists until both health checks have reported it.
  const paused = (value: string | null) => ({ metadata: { annotations: { 'cluster.x-k8s.io/paused': value } } })
  await twin.patch(MachineSet, 'ms', paused(''))
  await twin.settle('a second health check exists')
  await reportNodesReady(twin, 'False')
  await twin.settle('a Node is not ready', (objects) =>
    objects.some(({ kind, ...event }) => kind === 'Event' && (event as { reason?: string }).reason === 'RemediationRestricted'),
  )
  await twin.patch(MachineSet, 'ms', paused(null))
  await twin.settle('the Machine is replaced')
}

/** The health check selects Machines that no MachineSet owns. */
const standAlone: Case = async (twin) => {
  await createReadyCluster(twin)
  for (const [name, labels] of [
    ['a', { set: 'ms' }],
    ['b', { set: 'ms', 'cluster.x-k8s.io/control-plane': '' }],
  ] as const) {
    await twin.create(stub.config, named(name, { spec: {} }))
    await twin.create(stub.machine, named(name, { spec: {} }))
    const { metadata, ...body } = machine(name)
    await twin.create(Machine, { ...body, metadata: { ...metadata, labels } })
  }
  await twin.settle('Machines run')
  await twin.create(MachineHealthCheck, healthCheck() as never)
  await twin.settle('the Machines are checked')
  await reportNodesReady(twin, 'False', 2)
  await twin.settle('their Nodes are not ready')
  await reportNodesReady(twin, 'True', 2)
  await twin.settle('their Nodes are ready')
}

const remediationReset: Case = async (twin) => {
  await createCheckedMachines(twin, { remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 0 } } }, 1)
  await twin.patch(Machine, ([first]) => first, { metadata: { annotations: { 'cluster.x-k8s.io/remediate-machine': '' } } })
  await twin.settle('the Machine is marked, but remediation is not allowed')
  await twin.patch(Machine, ([first]) => first, { metadata: { annotations: { 'cluster.x-k8s.io/remediate-machine': null } } })
  await twin.settle('the Machine is no longer marked')
}

/** The preflight checks of the MachineSet fail during remediation. */
const preflightFails: Case = async (twin) => {
  const upgrading = { initialization: { controlPlaneInitialized: true }, version: 'v1.34.0' }
  await createCheckedMachines(twin, {}, 2)
  await twin.setReports({ controlPlane: () => ({ spec: { version: 'v1.35.0' }, status: upgrading }) })
  await reportNodesReadyAtOnce(twin, 'False', 1)
  await twin.settle('remediation waits for the preflight checks')
}

const infrastructureNotReady: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.setReports({
    cluster: () => ({ status: { initialization: { provisioned: true }, conditions: [infrastructureCondition] } }),
  })
  await twin.create(MachineSet, machineSet('ms'))
  await twin.settle('the infrastructure of the Cluster is not ready')
  await twin.create(MachineHealthCheck, healthCheck() as never)
  await twin.settle('Machines are not checked')
}
const infrastructureCondition = { type: 'Ready', status: 'False', reason: 'Broken', message: 'm', lastTransitionTime: longAgo }

const healthOf = (reason: string) => (objects: readonly KubeObject[]) =>
  objects.some(
    (object) => object.kind === 'Machine' && getCondition(object as Machine, 'HealthCheckSucceeded')?.reason === reason,
  )

/** Creates the Machine `m`, which no MachineSet or control plane owns, and its provider objects. */
export async function createStandAloneMachine(twin: Twin, labels: object = {}): Promise<void> {
  await twin.create(stub.config, named('m', { spec: {} }))
  await twin.create(stub.machine, named('m', { spec: {} }))
  const { metadata, ...body } = machine('m')
  await twin.create(Machine, { ...body, metadata: { ...metadata, labels: { set: 'ms', ...labels } } })
}

/** The Node becomes not ready. The Machine no longer counts as healthy, but becomes unhealthy only after a timeout. */
const pending =
  (checks: object, reason: string): Case =>
  async (twin) => {
    await createReadyCluster(twin)
    await createStandAloneMachine(twin)
    await twin.settle('the Machine runs')
    await twin.create(MachineHealthCheck, healthCheck({ checks }) as never)
    await twin.settle('the Machine is healthy', healthOf('HealthCheckSucceeded'))
    await reportNodesReady(twin, 'False', 1, timestamp(Date.now()))
    await twin.settle('the Node is not ready, and the timeout has not expired', (objects) =>
      objects.some(
        (object) => object.kind === 'MachineHealthCheck' && (object as MachineHealthCheck).status?.currentHealthy === 0,
      ),
    )
    await sleep(systemClock, seconds(timeoutSeconds))
    await twin.settle('the timeout expires', healthOf(reason))
  }

/**
 * Timeout of unhealthy conditions in seconds. `settle` must compare the state before the timeout expires, and upstream
 * reconciles a MachineHealthCheck at most once in 15 s.
 */
const timeoutSeconds = 60
const nodeNotReady = { unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds }] }
const machineNotReady = { unhealthyMachineConditions: [{ type: 'NodeReady', status: 'False', timeoutSeconds }] }

/** A control plane Machine is checked before the control plane is initialized. */
const beforeInitialization: Case = async (twin) => {
  await twin.setReports({ controlPlane: noReport, machine: noReport })
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  await twin.create(stub.controlPlane, named(clusterName, { spec: {} }))
  await twin.create(Cluster, cluster())
  await twin.settle('the control plane is not initialized')
  await createStandAloneMachine(twin, { 'cluster.x-k8s.io/control-plane': '' })
  await twin.settle('the Machine does not start')
  const remediation = { triggerIf: { unhealthyLessThanOrEqualTo: 1 } }
  await twin.create(MachineHealthCheck, healthCheck({ remediation }) as never)
  await twin.settle('the startup timeout expires', healthOf('NodeStartupTimeout'))
}

/** The end of the range is before its beginning. */
const invalidRange: Case = async (twin) => {
  await createCheckedMachines(twin, { remediation: { triggerIf: { unhealthyInRange: '[6-2]' } } }, 1)
  await reportNodesReady(twin, 'False')
  await twin.settle('the Machine is not remediated', (objects) =>
    objects.some((object) => object.kind === 'MachineHealthCheck' && (object as MachineHealthCheck).status?.currentHealthy === 0),
  )
}

/** The infrastructure provider blocks the deletion of a Machine that becomes unhealthy. */
const deletingMachine: Case = async (twin) => {
  await createReadyCluster(twin)
  await createStandAloneMachine(twin)
  await twin.settle('the Machine runs')
  await twin.create(MachineHealthCheck, healthCheck() as never)
  await twin.settle('the Machine is healthy', healthOf('HealthCheckSucceeded'))
  await twin.patch(stub.machine, 'm', { metadata: { finalizers: ['twin.capstan.dev/hold'] } })
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is being deleted')
  await reportNodesReady(twin, 'False')
  await twin.settle('the Machine is unhealthy', healthOf('UnhealthyNode'))
}

/** The Cluster is paused while a Machine becomes unhealthy. */
const pausedCluster: Case = async (twin) => {
  await createCheckedMachines(twin, {}, 1)
  await twin.patch(Cluster, clusterName, { spec: { paused: true } })
  await twin.settle('the Cluster is paused')
  await reportNodesReady(twin, 'False')
  await twin.settle('the Machine is not checked')
  await twin.patch(Cluster, clusterName, { spec: { paused: null } })
  await twin.settle('the Machine is replaced', (objects) =>
    objects.some(({ kind, ...event }) => kind === 'Event' && (event as { reason?: string }).reason === 'MachineMarkedUnhealthy'),
  )
}

export const healthCheckCases: Cases = {
  'healthcheck-invalid-range': invalidRange,
  'healthcheck-machine-deleted': deletingMachine,
  'healthcheck-cluster-paused': pausedCluster,
  'healthcheck-remediates': nodesNotReady(),
  'healthcheck-all-unhealthy': nodesNotReady({}, 1),
  'healthcheck-too-many': nodesNotReadyWithLimit({ unhealthyLessThanOrEqualTo: 0 }, 1),
  'healthcheck-too-many-percent': nodesNotReadyWithLimit({ unhealthyLessThanOrEqualTo: '40%' }, 2),
  'healthcheck-outside-of-range': nodesNotReadyWithLimit({ unhealthyInRange: '[2-5]' }, 1),
  'healthcheck-marked': marked,
  'healthcheck-skipped': notRemediated('skip-remediation'),
  'healthcheck-paused-machines': notRemediated('paused'),
  'healthcheck-node-gone': nodeGone,
  'healthcheck-healthy-again': healthyAgain,
  'healthcheck-external': external(true),
  'healthcheck-external-no-template': external(false),
  'healthcheck-paused': paused,
  'healthcheck-machine-conditions': machineConditions,
  'healthcheck-both-conditions': bothConditions,
  'healthcheck-no-startup': noStartup,
  'healthcheck-matches-nothing': matchesNothing,
  'healthcheck-of-deployment': ofDeployment(1),
  'healthcheck-of-deployment-percent': ofDeployment('50%'),
  'healthcheck-no-cluster': noCluster,
  'healthcheck-two-checks': twoChecks,
  'healthcheck-stand-alone-machines': standAlone,
  'healthcheck-marked-and-unmarked': remediationReset,
  'healthcheck-preflight-fails': preflightFails,
  'healthcheck-infrastructure-not-ready': infrastructureNotReady,
  'healthcheck-inside-of-range': nodesNotReadyWithLimit({ unhealthyInRange: '[1-1]' }, 1),
  'healthcheck-node-pending': pending(nodeNotReady, 'UnhealthyNode'),
  'healthcheck-machine-pending': pending(machineNotReady, 'UnhealthyMachine'),
  'healthcheck-control-plane-not-initialized': beforeInitialization,
  'healthcheck-two-node-conditions': nodesNotReady({
    checks: {
      nodeStartupTimeoutSeconds: 0,
      unhealthyNodeConditions: [
        { type: 'MemoryPressure', status: 'False', timeoutSeconds: 0 },
        { type: 'Ready', status: 'False', timeoutSeconds: 0 },
      ],
    },
    remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 0 } },
  }),
}
