/**
 * Cases of Machines, and functions with which other cases create Clusters and Machines.
 * Every case does the same with upstream's core and with Capstan's, and compares all objects after each step (`settle`).
 */
import { Cluster, Machine } from '@capstan/api'
import { Event, getCondition, isTrue, type KubeObject, Node, Pod, seconds, sleep, systemClock } from '@capstan/kube'
import { cluster, clusterName, machine, named, nodeCondition } from '../objects.ts'
import { everythingReady, hostedControlPlane, noReport } from '../providers.ts'
import { type Report, reportNodeStatus } from '../side.ts'
import { oldStub, stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createPolicy, denyEvents, endPolicy } from './policy.ts'

/** Creates a Cluster whose providers are ready, and its workload API server. */
export async function createReadyCluster(twin: Twin): Promise<void> {
  await twin.startWorkload(clusterName)
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  await twin.create(stub.controlPlane, named(clusterName, { spec: {} }))
  await twin.create(Cluster, cluster())
  await twin.settle('both cores are connected to the workload cluster', connected)
}

/** Returns whether core is connected to the workload cluster. Upstream retries a failed first attempt only after 30 s. */
export const connected = (objects: readonly KubeObject[]) =>
  objects.some((object) => object.kind === 'Cluster' && isTrue(object as Cluster, 'RemoteConnectionProbe'))

/** Returns whether both provider objects have an owner. Upstream looks for missing objects only every 30 s. */
const adopted = (objects: readonly KubeObject[]) =>
  ['StubMachine', 'StubConfig'].every((kind) =>
    objects.some((object) => object.kind === kind && (object.metadata.ownerReferences ?? []).length > 0),
  )

const lifecycle: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.settle('the Cluster is ready')
  await twin.create(stub.config, named('m', { spec: {} }))
  await twin.create(stub.machine, named('m', { spec: {} }))
  await twin.create(Machine, machine('m'))
  await twin.settle('the Machine is created')
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is deleted')
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted')
}

/**
 * Providers report texts instead of booleans for the milestones in `status.initialization`, either from the start or after they have
 * reported `true` (`isLater`).
 */
const milestonesOfWrongType =
  (isLater: boolean): Case =>
  async (twin) => {
    await createReadyCluster(twin)
    const reportWrongTypes = () =>
      twin.setReports({
        machine: () => ({ spec: { providerID: 'twin://m' }, status: { initialization: { provisioned: 'yes' } } }),
        config: () => ({ status: { initialization: { dataSecretCreated: 'yes' }, dataSecretName: 'data' } }),
      })
    if (!isLater) await reportWrongTypes()
    await twin.create(stub.config, named('m', { spec: {} }))
    await twin.create(stub.machine, named('m', { spec: {} }))
    await twin.create(Machine, machine('m'))
    await twin.settle('the Machine is created', adopted)
    await reportWrongTypes()
    await twin.touch(Machine, 'm')
    await twin.settle('the milestones are not booleans')
    await twin.delete(Machine, 'm')
    await twin.settle('the Machine is deleted')
  }

const lateProviders: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.setReports({ machine: noReport, config: noReport })
  await twin.create(Machine, machine('m'))
  await twin.settle('neither provider object exists')
  await twin.create(stub.config, named('m', { spec: {} }))
  await twin.create(stub.machine, named('m', { spec: {} }))
  await twin.settle('neither provider reports', adopted)
  await twin.setReports({ config: () => ({ status: { initialization: { dataSecretCreated: true }, dataSecretName: 'data' } }) })
  await twin.settle('the bootstrap data exists')
  await twin.setReports({ machine: () => ({ status: { initialization: { provisioned: true } } }) })
  await twin.settle('the infrastructure is provisioned without providerID')
  await twin.setReports({
    machine: () => ({ spec: { providerID: 'twin://m' }, status: { initialization: { provisioned: true } } }),
  })
  await twin.settle('the infrastructure has a providerID')
  await twin.delete(stub.machine, 'm')
  await twin.settle('the infrastructure is deleted by another client')
}

/** Creates a ready Cluster, a Machine of the Cluster, and the provider objects of the Machine; waits until the Machine has a Node. */
export async function createReadyMachine(twin: Twin, metadata: object = {}, spec: object = {}): Promise<void> {
  await createReadyCluster(twin)
  await twin.create(stub.config, named('m', { spec: {} }))
  await twin.create(stub.machine, named('m', { spec: {} }))
  const { metadata: own, ...rest } = machine('m', spec)
  await twin.create(Machine, { ...rest, metadata: { ...own, ...metadata } })
  await twin.settle('the Machine runs', (objects) => objects.some((object) => object.kind === 'Machine' && hasNode(object)))
}

/** Creates a Machine whose Node is drained and deleted with the Machine. */
export async function createDrainableMachine(twin: Twin, metadata: object = {}, spec: object = {}): Promise<void> {
  await twin.setReports({ controlPlane: hostedControlPlane })
  await createReadyMachine(twin, metadata, spec)
}

/** Returns a predicate for `settle`: whether the condition Deleting of a Machine has this reason, and a message that contains `text`. */
export const isInStage =
  (reason: string, text = '') =>
  (objects: readonly KubeObject[]): boolean =>
    objects.some((object) => {
      const deleting = object.kind === 'Machine' ? getCondition(object as Machine, 'Deleting') : undefined
      return deleting?.reason === reason && (deleting.message ?? '').includes(text)
    })

const hasEvent = (objects: readonly KubeObject[], reason: string): boolean =>
  objects.some((object) => object.kind === 'Event' && (object as Event).reason === reason)

/** Returns a predicate for `settle`: whether the Machine is deleted, and its deletion has recorded an event with this reason. */
export const isDeletedAfter =
  (reason: string) =>
  (objects: readonly KubeObject[]): boolean =>
    !objects.some(({ kind }) => kind === 'Machine') && hasEvent(objects, reason)

const hasNode = (machine: object): boolean => (machine as Machine).status?.nodeRef !== undefined

const ready = { spec: { providerID: 'twin://m' }, status: { initialization: { provisioned: true } } }

/** The infrastructure provider reports fields, one report per step. */
const reports =
  (...steps: (readonly [name: string, report: Report])[]): Case =>
  async (twin) => {
    await createReadyMachine(twin)
    for (const [name, { spec, status }] of steps) {
      const report = { spec: { ...ready.spec, ...spec }, status: { ...ready.status, ...status } }
      await twin.setReports({ machine: () => report })
      await twin.settle(name)
    }
  }

/** The bootstrap provider reports fields, one report per step. */
const configReports =
  (...steps: (readonly [name: string, status: object])[]): Case =>
  async (twin) => {
    await createReadyMachine(twin)
    for (const [name, status] of steps) {
      const created = { initialization: { dataSecretCreated: true }, dataSecretName: 'data' }
      await twin.setReports({ config: () => ({ status: { ...created, ...status } }) })
      await twin.settle(name)
    }
  }

const readyIs = (status: string, fields: object = {}) => ({
  conditions: [{ type: 'Ready', status, lastTransitionTime: '2026-01-01T00:00:00Z', ...fields }],
})

type NodeReport = readonly [type: string, status: string, message?: string]

/** Writes conditions of the Node as the kubelet does. */
async function reportNodeConditions(twin: Twin, reported: readonly NodeReport[]): Promise<void> {
  const conditions = reported.map(([type, status, message = '']) => nodeCondition(type, status, { message }))
  await twin.inWorkload(clusterName, (client) => reportNodeStatus(client, 'm', { conditions }))
}

/** The kubelet reports Node conditions. */
const nodeReports =
  (...reported: NodeReport[]): Case =>
  async (twin) => {
    await createReadyMachine(twin)
    await reportNodeConditions(twin, reported)
    await twin.settle('the kubelet has reported')
  }

const noPressure = (type: string) => [type, 'False'] as const

const nodeDeleted: Case = async (twin) => {
  await createDrainableMachine(twin)
  await twin.inWorkload(clusterName, (client) => client.delete(Node, { name: 'm' }))
  await twin.settle('the Node is deleted by another client')
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is deleted', isDeletedAfter('NodeVolumesDetached'))
}

/**
 * Core copies labels and annotations of certain domains from the Machine to its Node, and removes them from the Node when the Machine no
 * longer has them.
 */
const nodeMetadata: Case = async (twin) => {
  const labels = { 'node.cluster.x-k8s.io/pool': 'a', 'node-role.kubernetes.io/worker': '', other: 'stays' }
  await createReadyMachine(twin, { labels, annotations: { 'node.cluster.x-k8s.io/note': 'n' } })
  await twin.patch(Machine, 'm', {
    metadata: { labels: { 'node.cluster.x-k8s.io/pool': 'b', 'node-role.kubernetes.io/worker': null } },
  })
  await twin.settle('labels change')
  await twin.patch(Machine, 'm', { metadata: { annotations: { 'node.cluster.x-k8s.io/note': null } } })
  await twin.settle('the annotation is removed')
}

const taints: Case = async (twin) => {
  const taint = (key: string, propagation: 'Always' | 'OnInitialization') => ({
    key,
    value: 'v',
    effect: 'NoSchedule',
    propagation,
  })
  await createReadyMachine(twin, {}, { taints: [taint('once', 'OnInitialization'), taint('always', 'Always')] })
  await twin.patch(Machine, 'm', { spec: { taints: [taint('another', 'Always')] } })
  await twin.settle('taints change')
  await twin.patch(Machine, 'm', { spec: { taints: null } })
  await twin.settle('taints are removed')
}

const hooks: Case = async (twin) => {
  const pre = (when: string) => `pre-${when}.delete.hook.machine.cluster.x-k8s.io/wait`
  await createDrainableMachine(twin, { annotations: { [pre('drain')]: 'a', [pre('terminate')]: 'b' } })
  await createPod(twin, 'before')
  await twin.delete(Machine, 'm')
  await twin.settle('the pre-drain hook blocks', isInStage('WaitingForPreDrainHook'))
  await twin.patch(Machine, 'm', { metadata: { annotations: { [pre('drain')]: null } } })
  await twin.settle('a Pod is evicted', isInStage('DrainingNode', 'deletionTimestamp set'))
  await twin.inWorkload(clusterName, (client) =>
    client.delete(Pod, { namespace: 'default', name: 'before' }, { gracePeriodSeconds: 0 }),
  )
  await twin.settle('the pre-terminate hook blocks', isInStage('WaitingForPreTerminateHook'))
  await createPod(twin, 'after')
  await twin.patch(Machine, 'm', { metadata: { annotations: { [pre('terminate')]: null } } })
  await twin.settle('the Machine is deleted without a second drain', isDeletedAfter('SuccessfulDrainNode'))
}

/**
 * A pre-drain hook does not block, because the Node is not drained: the Cluster has neither control plane Machines nor a hosted control
 * plane.
 */
const hooksWithoutDrain: Case = async (twin) => {
  const pre = (when: string, name: string) => `pre-${when}.delete.hook.machine.cluster.x-k8s.io/${name}`
  const annotations = { [pre('drain', 'a')]: '', [pre('terminate', 'b')]: '', [pre('terminate', 'a')]: '' }
  await createReadyMachine(twin, { annotations })
  await twin.delete(Machine, 'm')
  await twin.settle('only the pre-terminate hooks block', isInStage('WaitingForPreTerminateHook', '/a,'))
  await twin.patch(Machine, 'm', { metadata: { annotations: { [pre('terminate', 'a')]: null } } })
  await twin.settle('one pre-terminate hook blocks', isInStage('WaitingForPreTerminateHook', '/b)'))
  await twin.patch(Machine, 'm', { metadata: { annotations: { [pre('terminate', 'b')]: null } } })
  await twin.settle('the Machine is deleted', isGone('Machine'))
}

const createPod = (twin: Twin, name: string) =>
  twin.inWorkload(clusterName, (client) =>
    client.create(Pod, {
      metadata: { name, namespace: 'default' },
      spec: { nodeName: 'm', containers: [{ name: 'c', image: 'i' }] },
    } as never),
  )

export const isGone =
  (kind: string) =>
  (objects: readonly KubeObject[]): boolean =>
    !objects.some((object) => object.kind === kind)

/**
 * Lets the API server of the workload cluster reject requests to delete the Node. The management cluster rejects the Events about these
 * requests, because the text of the Events depends on timing: upstream tries to delete the Node every two seconds, for ten seconds, and
 * reports the error of the last attempt. The sixth attempt is due when the ten seconds end. Upstream either omits the sixth attempt and
 * reports the rejection of the fifth, or makes it and reports the error of the rate limiter or of the expired context.
 */
const denyNodeDeletion = async (twin: Twin) => {
  await denyEvents(twin, 'FailedDeleteNode')
  await twin.inWorkload(clusterName, (client) =>
    createPolicy(client, 'keep', { group: '', resource: 'nodes', operation: 'DELETE' }),
  )
}

/** Requests to delete the Node are rejected for some time. */
const nodeDeletionDenied: Case = async (twin) => {
  await createDrainableMachine(twin, {}, { deletion: { nodeDeletionTimeoutSeconds: 0 } })
  await denyNodeDeletion(twin)
  await twin.delete(Machine, 'm')
  await twin.settle('the Node cannot be deleted', isInStage('DeletingNode'))
  await twin.inWorkload(clusterName, (client) => endPolicy(client, 'keep'))
  await twin.settle('the Node is deleted', (objects) => isGone('Node')(objects) && isGone('Machine')(objects))
}

/** Requests to delete the Node are rejected, and the Node deletion timeout expires. */
const nodeDeletionTimeout: Case = async (twin) => {
  await createDrainableMachine(twin, {}, { deletion: { nodeDeletionTimeoutSeconds: 1 } })
  await denyNodeDeletion(twin)
  await twin.delete(Machine, 'm')
  await twin.settle(
    'the Machine is deleted without its Node',
    (objects) => isDeletedAfter('SuccessfulDrainNode')(objects) && !isGone('Node')(objects),
  )
}

/** The first attempt to delete the Node is made after the Node deletion timeout has expired, and is rejected. A later attempt succeeds. */
const nodeDeletionLate: Case = async (twin) => {
  const hook = 'pre-terminate.delete.hook.machine.cluster.x-k8s.io/wait'
  await createDrainableMachine(twin, { annotations: { [hook]: '' } }, { deletion: { nodeDeletionTimeoutSeconds: 1 } })
  await denyNodeDeletion(twin)
  await twin.delete(Machine, 'm')
  await twin.settle('the pre-terminate hook blocks', isInStage('WaitingForPreTerminateHook'))
  await twin.patch(Machine, 'm', { metadata: { annotations: { [hook]: null } } })
  await sleep(systemClock, seconds(4))
  await twin.inWorkload(clusterName, (client) => endPolicy(client, 'keep'))
  await twin.settle('the Node is deleted', (objects) => isGone('Node')(objects) && isGone('Machine')(objects))
}

/** A Machine without a known Node is deleted while two Nodes have its provider ID. */
const twoNodesAtDeletion: Case = async (twin) => {
  await twin.setReports({ controlPlane: hostedControlPlane, machine: noReport })
  await createReadyCluster(twin)
  await twin.create(stub.config, named('m', { spec: {} }))
  await twin.create(stub.machine, named('m', { spec: {} }))
  await twin.create(Machine, machine('m'))
  await twin.settle('the infrastructure is not provisioned')
  await twin.inWorkload(clusterName, async (client) => {
    for (const name of ['one', 'two']) await client.create(Node, { metadata: { name }, spec: { providerID: 'twin://both' } })
  })
  // A core that has seen only one of the Nodes when the Machine gets its provider ID would record that Node in the status.
  await twin.settle('two Nodes exist')
  await twin.setReports({
    machine: () => ({ spec: { providerID: 'twin://both' }, status: { initialization: { provisioned: true } } }),
  })
  await twin.settle('two Nodes have the provider ID', (objects) =>
    objects.some((object) => object.kind === 'Machine' && (object as Machine).spec.providerID !== undefined),
  )
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is deleted', isGone('Machine'))
}

/**
 * Machines are deleted from a Cluster without control plane Machines, before and after its control plane reports that it is hosted.
 */
const beforeAndAfterHosting: Case = async (twin) => {
  await createReadyMachine(twin)
  await twin.delete(Machine, 'm')
  await twin.settle('the Node of a deleted Machine stays', isGone('Machine'))
  await twin.setReports({ controlPlane: hostedControlPlane })
  await twin.create(stub.config, named('hosted', { spec: {} }))
  await twin.create(stub.machine, named('hosted', { spec: {} }))
  await twin.create(Machine, machine('hosted'))
  await twin.settle('another Machine runs', (objects) => objects.some((object) => object.kind === 'Machine' && hasNode(object)))
  await twin.delete(Machine, 'hosted')
  await twin.settle('its Node is deleted', isDeletedAfter('SuccessfulDrainNode'))
}

const dataSecret: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.create(stub.machine, named('m', { spec: {} }))
  await twin.create(Machine, machine('m', { bootstrap: { dataSecretName: 'mine' } }))
  await twin.settle('the user supplies the bootstrap data Secret')
}

/** The user supplies the bootstrap data Secret, and the referenced config is being deleted. */
const dataSecretWithDeletedConfig: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.setReports({ machine: noReport, config: noReport })
  await twin.create(stub.config, { metadata: { name: 'm', finalizers: ['twin.capstan.dev/hold'] }, spec: {} } as never)
  await twin.delete(stub.config, 'm')
  await twin.create(stub.machine, named('m', { spec: {} }))
  const { bootstrap, ...spec } = machine('m').spec
  await twin.create(Machine, machine('m', { ...spec, bootstrap: { ...bootstrap, dataSecretName: 'mine' } }))
  await twin.settle('the Machine does not need the config')
}

const pausedReferences: Case = async (twin) => {
  await createReadyCluster(twin)
  const metadata = { name: 'm', annotations: { 'cluster.x-k8s.io/paused': '' } }
  await twin.create(stub.config, { metadata, spec: {} } as never)
  await twin.create(stub.machine, { metadata, spec: {} } as never)
  await twin.create(Machine, machine('m'))
  await twin.settle('the provider objects are paused')
}

const paused: Case = async (twin) => {
  await createDrainableMachine(twin)
  await twin.patch(Machine, 'm', { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } })
  await twin.settle('the Machine is paused')
  await twin.delete(Machine, 'm')
  await twin.settle('the deletion of the paused Machine is requested')
  await twin.patch(Machine, 'm', { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } })
  await twin.settle('the Machine is resumed', isDeletedAfter('SuccessfulDrainNode'))
}

const noCluster: Case = async (twin) => {
  await twin.create(Machine, machine('m'))
  await twin.settle('the Cluster does not exist')
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is deleted')
}

const readinessGate: Case = async (twin) => {
  await createReadyMachine(
    twin,
    {},
    { readinessGates: [{ conditionType: 'Extra' }, { conditionType: 'Bad', polarity: 'Negative' }] },
  )
}

/** The first readiness gate names a condition that no controller reports, the second a condition that Ready always includes. */
const readinessGateRepeated: Case = async (twin) => {
  await createReadyMachine(twin, {}, { readinessGates: [{ conditionType: 'Extra' }, { conditionType: 'NodeHealthy' }] })
  await reportNodeConditions(twin, [['Ready', 'False', 'no network']])
  await twin.settle('the Node is not healthy', machineHas('Ready', 'NotReady', '* NodeHealthy'))
}

/** A readiness gate names Ready, the condition that readiness gates contribute to. */
const gateOfItself: Case = async (twin) => {
  await createReadyMachine(twin, {}, { readinessGates: [{ conditionType: 'Ready' }] })
  await twin.settle('Ready cannot be computed', (objects) =>
    objects.some((object) => object.kind === 'Machine' && getCondition(object as Machine, 'Ready')?.reason === 'InternalError'),
  )
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is deleted', isGone('Machine'))
}

/** Readiness gates name conditions that core can report, and one that no controller reports. */
const gateOfCore: Case = async (twin) => {
  const conditionTypes = ['Extra', 'InfrastructureReady', 'Deleting', 'HealthCheckSucceeded', 'BootstrapConfigReady']
  await createReadyMachine(twin, {}, { readinessGates: conditionTypes.map((conditionType) => ({ conditionType })) })
  await twin.setReports({
    machine: () => ({ ...ready, status: { ...ready.status, ...readyIs('False', { message: 'slow' }) } }),
  })
  await twin.settle('the infrastructure is not ready')
}

/** Sets the annotation with the certificate expiry of a control plane Machine: on the config, on the Machine, and to an invalid value. */
const certificateExpiry: Case = async (twin) => {
  const expiry = (value: string | null) => ({
    metadata: { annotations: { 'machine.cluster.x-k8s.io/certificates-expiry': value } },
  })
  await createReadyMachine(twin, { labels: { 'cluster.x-k8s.io/control-plane': '' } })
  await twin.patch(stub.config, 'm', expiry('2030-01-01T00:00:00Z'))
  await twin.settle('the config has an expiry')
  await twin.patch(Machine, 'm', expiry('2031-02-02T00:00:00Z'))
  await twin.settle('the Machine has another expiry')
  await twin.patch(Machine, 'm', expiry('soon'))
  await twin.settle('the annotation of the Machine is invalid')
  await twin.patch(Machine, 'm', expiry(null))
  await twin.patch(stub.config, 'm', expiry(null))
  await twin.settle('no expiry is left')
}

/** Other controllers set finalizers on a Machine and its provider objects, and remove them one after another. */
const deletionBlocked: Case = async (twin) => {
  const finalizers = (list: readonly string[] | null) => ({ metadata: { finalizers: list } })
  const hold = ['twin.capstan.dev/hold']
  await createDrainableMachine(twin)
  await twin.patch(stub.machine, 'm', finalizers(hold))
  await twin.patch(stub.config, 'm', finalizers(hold))
  await twin.patch(Machine, 'm', finalizers(['machine.cluster.x-k8s.io', ...hold]))
  await twin.delete(Machine, 'm')
  await twin.settle('the infrastructure blocks the deletion', isInStage('WaitingForInfrastructureDeletion'))
  await twin.patch(stub.machine, 'm', finalizers(null))
  await twin.settle('the bootstrap config blocks the deletion', isInStage('WaitingForBootstrapDeletion'))
  await twin.patch(stub.config, 'm', finalizers(null))
  await twin.settle('only a finalizer on the Machine blocks the deletion', isGone('Node'))
  await twin.patch(Machine, 'm', finalizers(null))
  await twin.settle('the Machine is deleted', isGone('Machine'))
}

const minReadySeconds: Case = async (twin) => {
  await createReadyMachine(twin, {}, { minReadySeconds: 3600 })
  await twin.patch(Machine, 'm', { spec: { minReadySeconds: 0 } })
  await twin.settle('the Machine is available')
}

/** A second Node with the providerID of the Machine is created, and deleted again. */
const sameProviderID: Case = async (twin) => {
  await createReadyMachine(twin)
  await twin.inWorkload(clusterName, (client) =>
    client.create(Node, { metadata: { name: 'other' }, spec: { providerID: 'twin://m' } } as never, { fieldManager: 'kubelet' }),
  )
  await twin.touch(Machine, 'm')
  await twin.settle('two Nodes have the providerID')
  await twin.inWorkload(clusterName, (client) => client.delete(Node, { name: 'other' }))
  await twin.touch(Machine, 'm')
  await twin.settle('one Node has the providerID')
}

/** A control plane Machine is deleted while another one remains. Then the last one is deleted. */
const controlPlaneMachines: Case = async (twin) => {
  await createReadyCluster(twin)
  for (const name of ['m', 'n']) {
    await twin.create(stub.config, named(name, { spec: {} }))
    await twin.create(stub.machine, named(name, { spec: {} }))
    const { metadata, ...rest } = machine(name)
    await twin.create(Machine, { ...rest, metadata: { ...metadata, labels: { 'cluster.x-k8s.io/control-plane': '' } } })
  }
  await twin.settle(
    'both Machines run',
    (objects) => objects.filter((object) => object.kind === 'Machine' && hasNode(object)).length === 2,
  )
  await twin.delete(Machine, 'm')
  await twin.settle(
    'one Machine is deleted with its Node',
    (objects) => hasEvent(objects, 'SuccessfulDrainNode') && !objects.some(({ metadata }) => metadata.name === 'm'),
  )
  await twin.delete(Machine, 'n')
  await twin.settle(
    'the last Machine is deleted without its Node',
    (objects) => isGone('Machine')(objects) && !isGone('Node')(objects),
  )
}

/**
 * The Machine has labels and annotations of the domains that core copies to the Node, of their subdomains, and of other domains. Another
 * client changes labels and annotations of the Node.
 */
const nodeDomains: Case = async (twin) => {
  const domains = ['node-role.kubernetes.io', 'node-restriction.kubernetes.io', 'node.cluster.x-k8s.io', 'other.dev']
  const keys = domains.flatMap((domain) => [`${domain}/k`, `sub.${domain}/k`, `x${domain}/k`, domain, `sub.${domain}`])
  const metadata = Object.fromEntries(keys.map((key) => [key, 'v']))
  await createReadyMachine(twin, { labels: metadata, annotations: metadata })
  await twin.inWorkload(clusterName, (client) =>
    client.patch(
      Node,
      { name: 'm' },
      {
        type: 'merge',
        body: {
          metadata: {
            labels: { 'node.cluster.x-k8s.io/k': 'changed', 'sub.node.cluster.x-k8s.io/k': null, own: 'kept' },
            annotations: { 'cluster.x-k8s.io/owner-name': 'nobody', own: 'kept' },
          },
        },
      },
      { fieldManager: 'kubelet' },
    ),
  )
  await twin.touch(Machine, 'm')
  await twin.settle('another client has changed the Node')
}

/** Another client changes taints on the Node, and a user changes them on the Machine. */
const taintsChanged: Case = async (twin) => {
  const taint = (key: string, effect: string, propagation: string) => ({ key, effect, propagation, value: 'v' })
  await createReadyMachine(
    twin,
    {},
    { taints: [taint('a', 'NoSchedule', 'Always'), taint('b', 'NoExecute', 'OnInitialization')] },
  )
  await twin.inWorkload(clusterName, (client) =>
    client.patch(
      Node,
      { name: 'm' },
      {
        type: 'merge',
        body: {
          spec: {
            taints: [
              { key: 'a', effect: 'NoSchedule', value: 'other' },
              { key: 'mine', effect: 'NoSchedule' },
            ],
          },
        },
      },
      { fieldManager: 'kubelet' },
    ),
  )
  await twin.touch(Machine, 'm')
  await twin.settle('another client changes the taints')
  await twin.patch(Machine, 'm', { spec: { taints: [taint('a', 'NoSchedule', 'OnInitialization')] } })
  await twin.settle('the propagation changes')
  await twin.patch(Machine, 'm', { spec: { taints: [taint('a', 'NoExecute', 'Always')] } })
  await twin.settle('the effect changes')
}

/** The provider changes the providerID of a Machine with a Node. */
const otherProviderID: Case = async (twin) => {
  await createReadyMachine(twin)
  await twin.setReports({ machine: () => ({ ...ready, spec: { providerID: 'twin://other' } }) })
  await twin.settle('the providerID changes')
}

/** The control plane is being deleted when the deletion of the Machine is requested. */
const controlPlaneDeleted: Case = async (twin) => {
  await createDrainableMachine(twin, { labels: { 'cluster.x-k8s.io/control-plane': '' } })
  await twin.patch(stub.controlPlane, clusterName, { metadata: { finalizers: ['twin.capstan.dev/hold'] } })
  await twin.delete(stub.controlPlane, clusterName)
  await twin.settle('the control plane is being deleted')
  await twin.delete(Machine, 'm')
  await twin.settle(
    'the Machine is deleted without its Node',
    (objects) => isGone('Machine')(objects) && !isGone('Node')(objects),
  )
}

const clusterPaused: Case = async (twin) => {
  await createReadyMachine(twin)
  await twin.patch(Cluster, clusterName, { spec: { paused: true } })
  await twin.settle('the Cluster is paused')
  await twin.patch(Machine, 'm', { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } })
  await twin.settle('the Cluster and the Machine are paused')
  await twin.patch(Cluster, clusterName, { spec: { paused: null } })
  await twin.settle('only the Machine is paused')
}

/** A user deletes the bootstrap config of a Machine that has its bootstrap data. */
const configDeleted: Case = async (twin) => {
  await createReadyMachine(twin)
  await twin.delete(stub.config, 'm')
  await twin.settle('the bootstrap config is deleted')
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is deleted')
}

const noDataSecretName: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.setReports({ config: () => ({ status: { initialization: { dataSecretCreated: true } } }) })
  await twin.create(stub.config, named('m', { spec: {} }))
  await twin.create(stub.machine, named('m', { spec: {} }))
  await twin.create(Machine, machine('m'))
  await twin.settle('the name of the Secret is missing')
}

/** Returns a predicate for `settle`: whether a Machine has a condition with this type and reason, whose message contains `message`. */
const machineHas =
  (type: string, reason: string, message = '') =>
  (objects: readonly KubeObject[]) =>
    objects.some((object) => {
      const condition = object.kind === 'Machine' ? getCondition(object as Machine, type) : undefined
      return condition?.reason === reason && condition.message?.includes(message)
    })

const nodeIsAwaited = (message: string) => (objects: readonly KubeObject[]) =>
  ['NodeReady', 'NodeHealthy'].every((type) => machineHas(type, 'InspectionFailed', message)(objects))

/** Creates a Machine and its provider objects. */
export async function createMachine(
  twin: Twin,
  name: string,
  spec: object = {},
  metadata: object = {},
  kinds = stub,
): Promise<void> {
  await twin.create(kinds.config, named(name, { spec: {} }))
  await twin.create(kinds.machine, named(name, { spec: {} }))
  const { metadata: own, ...rest } = machine(name, spec, kinds)
  await twin.create(Machine, { ...rest, metadata: { ...own, ...metadata } })
}

/** A Machine waits for its Cluster, then for its provider, then for its Node. */
const awaitsNode: Case = async (twin) => {
  await twin.setReports({ cluster: noReport, controlPlane: noReport, machine: noReport })
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  await twin.create(stub.controlPlane, named(clusterName, { spec: {} }))
  await twin.create(Cluster, cluster())
  await twin.settle('the Cluster exists')
  await createMachine(twin, 'm')
  await twin.settle(
    'the Cluster is not provisioned',
    nodeIsAwaited('Waiting for Cluster status.initialization.infrastructureProvisioned to be true'),
  )
  await twin.setReports({ cluster: everythingReady.cluster })
  await twin.settle('the control plane is not initialized', nodeIsAwaited('Waiting for Cluster control plane to be initialized'))
  await twin.startWorkload(clusterName)
  // The stub provider does not register a Node with the providerID of the Machine, because a Node with the name of the Machine exists.
  await twin.inWorkload(clusterName, (client) => client.create(Node, { metadata: { name: 'm' } }, { fieldManager: 'kubelet' }))
  await twin.setReports({ controlPlane: everythingReady.controlPlane })
  await twin.settle('the control plane is initialized', connected)
  await twin.touch(Machine, 'm')
  await twin.settle('the provider reports nothing', nodeIsAwaited('Waiting for StubMachine to report spec.providerID'))
  await twin.setReports({ machine: everythingReady.machine })
  await twin.settle('there is no Node', nodeIsAwaited('Waiting for a Node with spec.providerID twin://m to exist'))
}

const withFinalizer = { metadata: { finalizers: ['twin.capstan.dev/hold'] } }

/** The Node of a Machine is deleted while the infrastructure blocks the deletion of the Machine. */
const nodeDeletedWhileDeleting: Case = async (twin) => {
  await createReadyMachine(twin)
  await twin.patch(stub.machine, 'm', withFinalizer)
  await twin.delete(Machine, 'm')
  await twin.settle('the infrastructure blocks the deletion', machineHas('Deleting', 'WaitingForInfrastructureDeletion'))
  await twin.inWorkload(clusterName, (client) => client.delete(Node, { name: 'm' }))
  await twin.touch(Machine, 'm')
  await twin.settle('the Node is deleted', machineHas('NodeHealthy', 'NodeDeleted', 'Node m has been deleted'))
}

/** A Machine without a Node is deleted; first its infrastructure blocks the deletion, then its bootstrap config. */
const deletedWithoutNode: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.setReports({ machine: noReport })
  await createMachine(twin, 'm')
  await twin.settle('the infrastructure is not provisioned', machineHas('InfrastructureReady', 'NotReady'))
  await twin.patch(stub.machine, 'm', withFinalizer)
  await twin.patch(stub.config, 'm', withFinalizer)
  await twin.delete(Machine, 'm')
  await twin.settle(
    'the infrastructure blocks the deletion',
    machineHas('NodeHealthy', 'NodeDoesNotExist', 'Node does not exist'),
  )
  await twin.patch(stub.machine, 'm', { metadata: { finalizers: null } })
  await twin.settle('the bootstrap config blocks the deletion', machineHas('InfrastructureReady', 'ObjectDoesNotExist'))
}

/** The kind of a provider object is not installed. */
const unknownKind =
  (spec: object, type: string, stage: string): Case =>
  async (twin) => {
    await createReadyCluster(twin)
    await createMachine(twin, 'm', spec)
    await twin.settle('the kind does not exist', machineHas(type, 'InternalError'))
    await twin.delete(Machine, 'm')
    await twin.settle(
      'the missing kind prevents the deletion',
      machineHas('Deleting', stage, 'Waiting for Nothing to be deleted'),
    )
  }
const nowhere = { apiGroup: 'nowhere.capstan.dev', kind: 'Nothing', name: 'm' }

/** Another controller reports conditions of control plane components, first with equal messages, then with different ones. */
const componentConditions: Case = async (twin) => {
  const types = [
    'APIServerPodHealthy',
    'ControllerManagerPodHealthy',
    'SchedulerPodHealthy',
    'EtcdPodHealthy',
    'EtcdMemberHealthy',
  ]
  await createReadyMachine(twin, {}, { readinessGates: types.map((conditionType) => ({ conditionType })) })
  const report = (...messages: readonly string[]) =>
    twin.runOnBoth('report conditions of control plane components', async (client) => {
      const key = { namespace: twin.namespace, name: 'm' }
      const { status } = await client.get(Machine, key)
      const conditions = types.map((type, index) => ({
        type,
        status: 'Unknown',
        reason: 'Twin',
        message: messages[index] ?? messages[0],
        lastTransitionTime: '2026-01-01T00:00:00Z',
      }))
      const others = status!.conditions!.filter(({ type }) => !types.includes(type))
      const body = { status: { conditions: [...others, ...conditions] } }
      await client.patch(Machine, key, { type: 'merge', body }, { subresource: 'status' })
    })
  await report('no Pod')
  await twin.settle('the messages are equal', machineHas('Ready', 'ReadyUnknown', '* Control plane components: no Pod'))
  await report('no Pod', 'no Node')
  await twin.settle('a message is different', machineHas('Ready', 'ReadyUnknown', '* ControllerManagerPodHealthy: no Node'))
}

/** A stand-alone Machine has a Cluster of another API group as owner. */
const ownerOfAnotherGroup: Case = async (twin) => {
  await createReadyCluster(twin)
  const { metadata, spec } = machine('m')
  const ownerReferences = [{ apiVersion: 'example.com/v1', kind: 'Cluster', name: 'x', uid: 'x' }]
  await twin.create(Machine, { metadata: { ...metadata, ownerReferences }, spec })
  await twin.settle('the Machine has two owners')
}

/** A label names an owner that the Machine does not have. */
const labelWithoutOwner =
  (label: string): Case =>
  async (twin) => {
    await createReadyMachine(twin, { labels: { [`cluster.x-k8s.io/${label}`]: 'missing' } })
    await twin.delete(Machine, 'm')
    await twin.settle('the Machine is deleted', (objects) => !objects.some(({ kind }) => kind === 'Machine'))
  }

type Until = (objects: readonly KubeObject[]) => boolean

/** Creates a Machine with providers of contract v1beta1. Then the providers of `roles` report a status, one report per step. */
const oldReports =
  (
    roles: readonly ('machine' | 'config')[],
    ...steps: readonly (readonly [name: string, status: object, until: Until])[]
  ): Case =>
  async (twin) => {
    const ready = { machine: { ready: true }, config: { ready: true, dataSecretName: 'data' } }
    const report = (role: 'machine' | 'config', fields: object) => ({
      [role]: () => ({
        ...(role === 'machine' ? { spec: { providerID: 'twin://m' } } : {}),
        status: { ...ready[role], ...fields },
      }),
    })
    await createReadyCluster(twin)
    await twin.setReports({ ...report('machine', {}), ...report('config', {}) })
    await createMachine(twin, 'm', {}, {}, oldStub)
    await twin.settle('the Machine runs', (objects) => objects.some((object) => object.kind === 'Machine' && hasNode(object)))
    for (const [name, status, until] of steps) {
      for (const role of roles) await twin.setReports(report(role, status))
      await twin.settle(name, until)
    }
  }

const bothHave = (reason: string, message?: string) => (objects: readonly KubeObject[]) =>
  ['BootstrapConfigReady', 'InfrastructureReady'].every((type) => machineHas(type, reason, message)(objects))

const failureIs = (failureReason: string) => (objects: readonly KubeObject[]) =>
  objects.some(
    (object) => object.kind === 'Machine' && (object as Machine).status?.deprecated?.v1beta1?.failureReason === failureReason,
  )

const failures = [
  ['a failure is reported', { failureReason: 'Bad', failureMessage: 'no quota' }, failureIs('Bad')],
  ['another failure is reported', { failureReason: 'Worse', failureMessage: 'no disk' }, failureIs('Worse')],
  ['no failure is reported', { failureReason: null, failureMessage: null }, failureIs('Worse')],
] as const

/** Providers of contract v1beta1 first report `ready: false`, later `true`, and then `false` again. */
const oldMilestones: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.setReports({ machine: () => ({ status: { ready: false } }), config: () => ({ status: { ready: false } }) })
  await createMachine(twin, 'm', {}, {}, oldStub)
  await twin.settle('the providers are not ready', bothHave('NotReady'))
  await twin.setReports({ config: () => ({ status: { ready: true, dataSecretName: 'data' } }) })
  await twin.settle('the bootstrap data exists', machineHas('BootstrapConfigReady', 'Ready'))
  const report = {
    spec: { providerID: 'twin://m', failureDomain: 'a' },
    status: { addresses: [{ type: 'Hostname', address: 'm' }] },
  }
  await twin.setReports({ machine: () => ({ ...report, status: { ...report.status, ready: true } }) })
  await twin.settle('the infrastructure is ready', machineHas('NodeHealthy', 'NodeHealthy'))
  await twin.setReports({
    machine: () => ({ ...report, status: { ...report.status, ready: false } }),
    config: () => ({ status: { ready: false } }),
  })
  await twin.settle('the providers are no longer ready')
}

export const machineCases: Cases = {
  'machine-awaits-node': awaitsNode,
  'machine-node-deleted-while-deleting': nodeDeletedWhileDeleting,
  'machine-deleted-without-node': deletedWithoutNode,
  'machine-unknown-config-kind': unknownKind(
    { bootstrap: { configRef: nowhere } },
    'BootstrapConfigReady',
    'WaitingForBootstrapDeletion',
  ),
  'machine-unknown-infrastructure-kind': unknownKind(
    { infrastructureRef: nowhere },
    'InfrastructureReady',
    'WaitingForInfrastructureDeletion',
  ),
  'machine-config-nonsense': configReports(['the status of the condition is not valid', readyIs('Maybe', { reason: 'Odd' })]),
  'machine-component-conditions': componentConditions,
  'machine-owner-of-another-group': ownerOfAnotherGroup,
  'machine-set-label-without-owner': labelWithoutOwner('set-name'),
  'machine-pool-label-without-owner': labelWithoutOwner('pool-name'),
  'machine-control-plane-label-without-owner': labelWithoutOwner('control-plane-name'),
  'machine-old-conditions': oldReports(
    ['machine', 'config'],
    ['the conditions are true', readyIs('True'), bothHave('Ready')],
    [
      'the conditions are false',
      readyIs('False', { severity: 'Error', reason: 'Broken', message: 'no quota' }),
      bothHave('Broken'),
    ],
    ['the conditions have no reason', readyIs('False', { severity: 'Info' }), bothHave('NoReasonReported')],
    ['the conditions are unknown', readyIs('Unknown', { reason: 'Asking', message: 'why' }), bothHave('Asking')],
    ['the conditions are not valid', readyIs('Maybe', { reason: 'Odd' }), bothHave('InvalidConditionReported')],
    ['the conditions are no longer reported', { conditions: [] }, bothHave('Ready')],
  ),
  'machine-old-infrastructure-failure': oldReports(['machine'], ...failures),
  'machine-old-config-failure': oldReports(['config'], ...failures),
  'machine-old-milestones': oldMilestones,
  'machine-config-ready': configReports(
    ['the condition is true', readyIs('True', { reason: 'Fine' })],
    ['the condition is false', readyIs('False', { reason: 'Broken', message: 'no quota' })],
    ['the condition is unknown', readyIs('Unknown', { reason: 'Asking', message: 'why' })],
  ),
  'machine-config-severity': configReports(
    ['the severity is Error', readyIs('False', { severity: 'Error', reason: 'Broken', message: 'no quota' })],
    ['the severity is Info', readyIs('False', { severity: 'Info', reason: 'Waiting' })],
    ['the condition is true', readyIs('True')],
  ),
  'machine-config-failure': configReports(['a failure is reported', { failureReason: 'Bad', failureMessage: 'no quota' }]),
  'machine-infrastructure-true': reports(['the condition is true', { status: readyIs('True', { reason: 'Fine' }) }]),
  'machine-infrastructure-false': reports([
    'the condition is false',
    { status: readyIs('False', { reason: 'Broken', message: 'no quota' }) },
  ]),
  'machine-infrastructure-unknown': reports([
    'the condition is unknown',
    { status: readyIs('Unknown', { reason: 'Asking', message: 'why' }) },
  ]),
  'machine-infrastructure-nonsense': reports([
    'the status of the condition is not valid',
    { status: readyIs('Maybe', { reason: 'Odd' }) },
  ]),
  'machine-infrastructure-taken-back': reports([
    'the infrastructure is no longer provisioned',
    { status: { initialization: { provisioned: false } } },
  ]),
  'machine-infrastructure-failure': reports([
    'a failure is reported',
    { status: { failureReason: 'Bad', failureMessage: 'no quota' } },
  ]),
  'machine-addresses': reports(
    [
      'two addresses',
      {
        status: {
          addresses: [
            { type: 'InternalIP', address: '1.2.3.4' },
            { type: 'Hostname', address: 'm' },
          ],
        },
      },
    ],
    ['one address', { status: { addresses: [{ type: 'Hostname', address: 'm' }] } }],
    ['no address', { status: { addresses: [] } }],
  ),
  'machine-failure-domain': reports(
    ['spec has a failure domain', { spec: { failureDomain: 'a' } }],
    ['status has a failure domain', { status: { failureDomain: 'b' } }],
    ['the failure domain in spec is empty', { spec: { failureDomain: '' } }],
    ['the failure domain in status is empty', { status: { failureDomain: '' } }],
  ),
  'machine-interruptible': reports(['the Machine is interruptible', { status: { interruptible: true } }]),
  'machine-node-not-ready': nodeReports(
    ['Ready', 'False', 'kubelet stopped'],
    noPressure('MemoryPressure'),
    noPressure('DiskPressure'),
    noPressure('PIDPressure'),
  ),
  'machine-node-ready-with-message': nodeReports(
    ['Ready', 'True', 'all good'],
    noPressure('MemoryPressure'),
    noPressure('DiskPressure'),
    noPressure('PIDPressure'),
  ),
  'machine-node-unknown': nodeReports(
    ['Ready', 'Unknown', 'lost'],
    ['MemoryPressure', 'Unknown', 'lost'],
    ['DiskPressure', 'Unknown', 'lost'],
    ['PIDPressure', 'Unknown', 'lost'],
  ),
  'machine-node-pressure': nodeReports(
    ['Ready', 'True'],
    ['MemoryPressure', 'True', 'too much'],
    noPressure('DiskPressure'),
    noPressure('PIDPressure'),
  ),
  'machine-node-missing-conditions': nodeReports(['Ready', 'True']),
  'machine-node-no-conditions': nodeReports(),
  'machine-node-same-message': nodeReports(['Ready', 'False', 'off'], ['MemoryPressure', 'True', 'off']),
  'machine-node-deleted': nodeDeleted,
  'machine-node-metadata': nodeMetadata,
  'machine-taints': taints,
  'machine-deletion-hooks': hooks,
  'machine-deletion-hooks-without-drain': hooksWithoutDrain,
  'machine-node-deletion-denied': nodeDeletionDenied,
  'machine-node-deletion-timeout': nodeDeletionTimeout,
  'machine-node-deletion-late': nodeDeletionLate,
  'machine-two-nodes-at-deletion': twoNodesAtDeletion,
  'machine-hosted-control-plane': beforeAndAfterHosting,
  'machine-data-secret': dataSecret,
  'machine-data-secret-with-deleted-config': dataSecretWithDeletedConfig,
  'machine-paused-references': pausedReferences,
  'machine-paused': paused,
  'machine-no-cluster': noCluster,
  'machine-readiness-gates': readinessGate,
  'machine-readiness-gate-repeated': readinessGateRepeated,
  'machine-readiness-gate-of-itself': gateOfItself,
  'machine-readiness-gates-of-core': gateOfCore,
  'machine-life': lifecycle,
  'machine-milestones-of-wrong-type': milestonesOfWrongType(false),
  'machine-milestones-of-wrong-type-later': milestonesOfWrongType(true),
  'machine-late-providers': lateProviders,
  'machine-certificate-expiry': certificateExpiry,
  'machine-deletion-blocked': deletionBlocked,
  'machine-min-ready-seconds': minReadySeconds,
  'machine-same-provider-id': sameProviderID,
  'machine-other-provider-id': otherProviderID,
  'machine-control-plane-members': controlPlaneMachines,
  'machine-control-plane-deleted': controlPlaneDeleted,
  'machine-node-domains': nodeDomains,
  'machine-taints-changed': taintsChanged,
  'machine-cluster-paused': clusterPaused,
  'machine-config-deleted': configDeleted,
  'machine-no-data-secret-name': noDataSecretName,
}
