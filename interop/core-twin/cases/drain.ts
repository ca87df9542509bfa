import { Cluster, Machine, MachineDrainRule } from '@capstan/api'
import {
  type Client,
  DaemonSet,
  getCondition,
  type Input,
  type Kind,
  type KubeObject,
  Namespace,
  Node,
  Pod,
  unknownKind,
} from '@capstan/kube'
import { clusterName, machine, named } from '../objects.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createDrainableMachine, createReadyCluster, isDeletedAfter, isDeleting, isGone } from './machine.ts'
import { createPolicy, endPolicy } from './policy.ts'

const PodDisruptionBudget = unknownKind({ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', plural: 'poddisruptionbudgets' })
const VolumeAttachment = unknownKind({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'VolumeAttachment',
  plural: 'volumeattachments',
  scope: 'Cluster',
})

const PersistentVolume = unknownKind({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  scope: 'Cluster',
})

const pod = (name: string, fields: { metadata?: object; spec?: object } = {}): Input<Pod> =>
  ({
    metadata: { name, namespace: 'default', ...fields.metadata },
    spec: { nodeName: 'm', containers: [{ name: 'c', image: 'i' }], ...fields.spec },
  }) as unknown as Input<Pod>

const ownedBy = (kind: string) => ({
  ownerReferences: [{ apiVersion: 'apps/v1', kind, name: 'x', uid: 'x', controller: true }],
})

const createInWorkload = <T extends KubeObject>(twin: Twin, kind: Kind<T>, ...objects: readonly Input<T>[]) =>
  twin.inWorkload(clusterName, async (client) => {
    for (const object of objects) await client.create(kind, object)
  })

/** Removes all Pods that are being deleted, as the kubelet does when they have ended. */
const removeEndedPods = (twin: Twin) =>
  twin.inWorkload(clusterName, async (client: Client) => {
    const { items } = await client.list(Pod, { namespace: 'default' })
    for (const { metadata } of items)
      if (metadata.deletionTimestamp !== undefined)
        await client.delete(Pod, { namespace: 'default', name: metadata.name }, { gracePeriodSeconds: 0 }).catch(() => undefined)
  })

/** A state in which the drain waits, and what ends it. */
interface Stage {
  readonly step: string
  /** Part of the message of the Deleting condition. */
  readonly message: string
  readonly end: (twin: Twin) => Promise<void>
}

const podsText = (names: readonly string[]) =>
  `${names.length === 1 ? 'Pod' : 'Pods'} ${names.map((name) => `default/${name}`).join(', ')}`

/** Pods are evicted. Then the kubelet ends them. */
const evicts = (...names: readonly string[]): Stage => ({
  step: `evicts ${names.join(', ')}`,
  message: `* ${podsText(names)}: deletionTimestamp set`,
  end: removeEndedPods,
})

/** The drain waits for Pods that it does not evict. Then a user deletes them. */
const waitsFor = (...names: readonly string[]): Stage => ({
  step: `waits for ${names.join(', ')}`,
  message: `* ${podsText(names)}: waiting for completion`,
  end: (twin) =>
    twin.inWorkload(clusterName, async (client) => {
      for (const name of names) await client.delete(Pod, { namespace: 'default', name }, { gracePeriodSeconds: 0 })
    }),
})

interface DrainScenario {
  readonly pods: readonly Input<Pod>[]
  readonly rules?: readonly object[]
  readonly annotations?: { [key: string]: string }
  readonly spec?: object
  readonly before?: (twin: Twin) => Promise<void>
  /** States of the drain, in their order. */
  readonly stages?: readonly Stage[]
  /** Reason of an event that the deletion records. */
  readonly event?: string
}

/** A Machine is deleted while Pods run on its Node. */
const drained =
  ({ pods, rules = [], annotations = {}, spec = {}, before, stages = [], event = 'SuccessfulDrainNode' }: DrainScenario): Case =>
  async (twin) => {
    await createDrainableMachine(twin, { annotations }, spec)
    await createInWorkload(twin, Pod, ...pods)
    await before?.(twin)
    for (const [index, rule] of rules.entries())
      await twin.create(MachineDrainRule, { metadata: { name: `rule-${index}` }, spec: rule } as never)
    await twin.settle('Pods run')
    await twin.delete(Machine, 'm')
    for (const { step, message, end } of stages) {
      await twin.settle(step, isDeleting('DrainingNode', message))
      await end(twin)
    }
    await twin.settle('the Machine is deleted', isDeletedAfter(event))
  }

const excluded = 'machine.cluster.x-k8s.io/exclude-node-draining'
const labelled = (labels: object) => ({ metadata: { labels } })
const drainRule = (behavior: string, fields: object = {}, order?: number) => ({
  drain: { behavior, ...(order === undefined ? {} : { order }) },
  ...fields,
})
const web = { pods: [{ selector: { matchLabels: { app: 'web' } } }] }

/** A PodDisruptionBudget blocks the eviction of the Pod `a`. Then a user ends that in some way. */
const isBlocked = (end: Stage['end']): Stage => ({
  step: 'the disruption budget blocks',
  message: "* Pod default/a: cannot evict pod as it would violate the pod's disruption budget.",
  end,
})

const deleteBudget = (twin: Twin) =>
  twin.inWorkload(clusterName, (client) => client.delete(PodDisruptionBudget, { namespace: 'default', name: 'pdb' }))

const createBudget = (twin: Twin) =>
  createInWorkload(twin, PodDisruptionBudget, {
    metadata: { name: 'pdb', namespace: 'default' },
    spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'web' } } },
  } as never)

const clusterDeleted: Case = async (twin) => {
  await createDrainableMachine(twin)
  await createInWorkload(twin, Pod, pod('a'))
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted without a drain', isGone('Cluster'))
}

const volume = (fields: object = {}): Input<KubeObject> =>
  ({
    metadata: { name: 'pv' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      csi: { driver: 'csi', volumeHandle: 'handle' },
      ...fields,
    },
  }) as never

const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'default', name: 'data' }

/** A VolumeAttachment exists, for some of these PersistentVolumes. Then the volume is detached. */
const attached =
  (message: string, ...volumes: readonly Input<KubeObject>[]): Case =>
  async (twin) => {
    await createDrainableMachine(twin)
    await createInWorkload(twin, PersistentVolume, ...volumes)
    await twin.inWorkload(clusterName, attachVolume)
    await twin.delete(Machine, 'm')
    await twin.settle('a volume is attached', isDeleting('WaitingForVolumeDetach', message))
    await twin.inWorkload(clusterName, (client) => client.delete(VolumeAttachment, { name: 'va' }))
    await twin.settle('the volume is detached', isDeletedAfter('NodeVolumesDetached'))
  }

const volumesExcluded: Case = async (twin) => {
  await createDrainableMachine(twin, { annotations: { 'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach': '' } })
  await twin.inWorkload(clusterName, attachVolume)
  await twin.delete(Machine, 'm')
  await twin.settle('the volume does not block the deletion', isDeletedAfter('SuccessfulDrainNode'))
}

/** Creates a DaemonSet and a Pod of it. */
const createDaemonSetPod = async (twin: Twin, spec: object = {}): Promise<void> => {
  const template = { metadata: { labels: { app: 'agent' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
  await twin.inWorkload(clusterName, async (client) => {
    const { metadata } = await client.create(DaemonSet, {
      metadata: { name: 'agent', namespace: 'default' },
      spec: { selector: { matchLabels: { app: 'agent' } }, template },
    } as never)
    const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'agent', uid: metadata.uid, controller: true }
    await client.create(Pod, pod('agent', { metadata: { labels: { app: 'agent' }, ownerReferences: [owner] }, spec }))
  })
}

const withClaim = { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] }

/** A volume stays attached because drain skips the Pod that uses it. */
const volumeOfSkippedPod =
  (start: (twin: Twin) => Promise<void>): Case =>
  async (twin) => {
    await createDrainableMachine(twin)
    await createInWorkload(twin, PersistentVolume, volume({ claimRef }))
    await start(twin)
    await twin.inWorkload(clusterName, attachVolume)
    await twin.delete(Machine, 'm')
    await twin.settle('the volume does not block the deletion', isDeletedAfter('NodeVolumesDetached'))
  }

const attachVolume = async (client: Client): Promise<void> => {
  await client.create(VolumeAttachment, {
    metadata: { name: 'va' },
    spec: { attacher: 'csi', nodeName: 'm', source: { persistentVolumeName: 'pv' } },
  } as never)
  const body = { status: { attached: true } }
  await client.patch(VolumeAttachment, { name: 'va' }, { type: 'merge', body }, { subresource: 'status' })
}

/** The kubelet reports an attached volume, for some of these PersistentVolumes. Then the volume is detached. */
const inUse =
  (name: string, message: string, ...volumes: readonly Input<KubeObject>[]): Case =>
  async (twin) => {
    await createDrainableMachine(twin)
    await createInWorkload(twin, PersistentVolume, ...volumes)
    await patchNodeStatus(twin, { volumesAttached: [{ name, devicePath: '' }], volumesInUse: [name] })
    await twin.delete(Machine, 'm')
    await twin.settle('a volume is attached', isDeleting('WaitingForVolumeDetach', message))
    await patchNodeStatus(twin, { volumesAttached: null })
    await twin.settle('the volume is detached', isDeletedAfter('NodeVolumesDetached'))
  }

const patchNodeStatus = (twin: Twin, status: object) =>
  twin.inWorkload(clusterName, (client) =>
    client.patch(Node, { name: 'm' }, { type: 'merge', body: { status } }, { subresource: 'status', fieldManager: 'kubelet' }),
  )

/** The node controller reports that the kubelet has stopped. */
const stopKubelet = async (twin: Twin) => {
  const timestamp = '2026-01-01T00:00:00Z'
  const conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
    type,
    status: 'Unknown',
    reason: 'NodeStatusUnknown',
    message: 'Kubelet stopped posting node status.',
    lastHeartbeatTime: timestamp,
    lastTransitionTime: timestamp,
  }))
  await patchNodeStatus(twin, { conditions })
  await twin.settle('the Node is unreachable', (objects) => objects.some(isUnreachable))
}

const isUnreachable = (object: KubeObject): boolean =>
  object.kind === 'Machine' && getCondition(object as Machine, 'NodeReady')?.status === 'Unknown'

/** Pods of an unreachable Node never end, and its volumes stay attached. */
const unreachable: Case = async (twin) => {
  await createDrainableMachine(twin)
  await createInWorkload(twin, Pod, withGrace('a'))
  await twin.inWorkload(clusterName, attachVolume)
  await stopKubelet(twin)
  await twin.delete(Machine, 'm')
  await twin.settle('neither Pod nor volume blocks the deletion', isDeletedAfter('NodeVolumesDetached'))
}

/** A Node whose taint, but not its condition, says that it is unreachable. */
const taintedUnreachable = (twin: Twin) =>
  twin.inWorkload(clusterName, (client) =>
    client.patch(
      Node,
      { name: 'm' },
      { type: 'merge', body: { spec: { taints: [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }] } } },
      { fieldManager: 'kubelet' },
    ),
  )

const createTerminatingNamespace = (twin: Twin) =>
  twin.inWorkload(clusterName, async (client) => {
    await client.create(Namespace, { metadata: { name: 'terminating', finalizers: ['twin.capstan.dev/hold'] } })
    await client.create(Pod, pod('held', { metadata: { namespace: 'terminating' } }))
    await client.delete(Namespace, { name: 'terminating' })
  })

const orderedRules = [
  drainRule('Drain', web, -5),
  drainRule('Drain', { pods: [{ selector: { matchLabels: { app: 'late' } } }] }, 10),
]

/** Two rules that match the same Pod. The first rule by name is applied. */
const skipThenDrain = [drainRule('Skip', web), drainRule('Drain', web, 3)]

/** Returns a Pod with a long termination grace period. */
const withGrace = (name: string, fields: object = {}) => pod(name, { spec: { terminationGracePeriodSeconds: 3600, ...fields } })

const finishPod = (twin: Twin, name = 'a') =>
  twin.inWorkload(clusterName, (client) =>
    client.patch(
      Pod,
      { namespace: 'default', name },
      { type: 'merge', body: { status: { phase: 'Succeeded' } } },
      { subresource: 'status', fieldManager: 'kubelet' },
    ),
  )

const volumeTimeout: Case = async (twin) => {
  await createDrainableMachine(twin, {}, { deletion: { nodeVolumeDetachTimeoutSeconds: 1 } })
  await twin.inWorkload(clusterName, attachVolume)
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is deleted after the timeout', isDeletedAfter('SuccessfulDrainNode'))
}

const finishDaemonSetPod = async (twin: Twin) => {
  await createDaemonSetPod(twin)
  await finishPod(twin, 'agent')
}

const denyEvictions = (twin: Twin) =>
  twin.inWorkload(clusterName, (client) =>
    createPolicy(client, 'evictions', { group: '', resource: 'pods/eviction', operation: 'CREATE' }),
  )

const evictionDenied: Stage = {
  step: 'the eviction is rejected',
  message: '* Pod default/a: failed to evict Pod, ',
  end: (twin) => twin.inWorkload(clusterName, (client) => endPolicy(client, 'evictions')),
}

/** A control plane Machine is deleted while another one remains. */
const controlPlaneMachine: Case = async (twin) => {
  await createReadyCluster(twin)
  const labels = { 'cluster.x-k8s.io/control-plane': '' }
  for (const name of ['m', 'n']) {
    await twin.create(stub.config, named(name, { spec: {} }))
    await twin.create(stub.machine, named(name, { spec: {} }))
    await twin.create(Machine, { ...machine(name), metadata: { name, labels } })
  }
  await createInWorkload(twin, Pod, pod('a'), pod('b', { spec: { nodeName: 'n' } }))
  await twin.settle('both Machines run', (objects) => objects.filter(hasNode).length === 2)
  await twin.delete(Machine, 'm')
  await twin.settle('a Pod of one Node is evicted', isDeleting('DrainingNode', 'deletionTimestamp set'))
  await removeEndedPods(twin)
  await twin.settle('one Machine is deleted', (objects) => objects.filter(hasNode).length === 1)
}

const hasNode = (object: KubeObject): boolean => object.kind === 'Machine' && (object as Machine).status?.nodeRef !== undefined

export const drainCases: Cases = {
  'drain-pods': drained({
    pods: [pod('a'), pod('b', { metadata: ownedBy('ReplicaSet') })],
    stages: [evicts('a', 'b')],
  }),
  'drain-nothing': drained({ pods: [] }),
  'drain-pod-of-another-node': drained({ pods: [pod('a', { spec: { nodeName: 'other' } })] }),
  'drain-many-pods': drained({
    pods: Array.from({ length: 7 }, (_, index) => pod(`p${index}`)),
    stages: [
      { ...evicts('p0', 'p1', 'p2'), message: '* Pods default/p0, default/p1, default/p2, ... (4 more): deletionTimestamp' },
    ],
  }),
  'drain-daemonset-gone': drained({ pods: [pod('a', { metadata: ownedBy('DaemonSet') })], stages: [evicts('a')] }),
  'drain-daemonset': drained({ pods: [pod('a')], before: createDaemonSetPod, stages: [evicts('a')] }),
  'drain-daemonset-finished': drained({ pods: [], before: finishDaemonSetPod, stages: [evicts('agent')] }),
  'drain-mirror-pod': drained({
    pods: [pod('a', { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } } }), pod('b')],
    stages: [evicts('b')],
  }),
  'drain-empty-dir': drained({
    pods: [pod('a', { spec: { volumes: [{ name: 'v', emptyDir: {} }] } })],
    stages: [evicts('a')],
  }),
  'drain-label-skip': drained({
    pods: [pod('a', labelled({ 'cluster.x-k8s.io/drain': 'skip' })), pod('b')],
    stages: [evicts('b')],
  }),
  'drain-label-wait': drained({
    pods: [pod('a', labelled({ 'cluster.x-k8s.io/drain': 'Wait-Completed' })), pod('b')],
    stages: [evicts('b'), waitsFor('a')],
  }),
  'drain-label-unknown': drained({
    pods: [pod('a', labelled({ 'cluster.x-k8s.io/drain': 'perhaps' }))],
    stages: [evicts('a')],
  }),
  'drain-label-before-rule': drained({
    pods: [pod('a', labelled({ app: 'web', 'cluster.x-k8s.io/drain': 'skip' }))],
    rules: [drainRule('WaitCompleted', web)],
  }),
  'drain-rule-skip': drained({
    pods: [pod('a', labelled({ app: 'web' })), pod('b')],
    rules: [drainRule('Skip', web)],
    stages: [evicts('b')],
  }),
  'drain-rule-wait': drained({
    pods: [pod('a', labelled({ app: 'web' })), pod('b')],
    rules: [drainRule('WaitCompleted', web)],
    stages: [evicts('b'), waitsFor('a')],
  }),
  'drain-rule-order': drained({
    pods: [pod('a', labelled({ app: 'web' })), pod('b'), pod('c', labelled({ app: 'late' }))],
    rules: orderedRules,
    stages: [evicts('a'), evicts('b'), evicts('c')],
  }),
  'drain-rule-wait-later': drained({
    pods: [pod('a', labelled({ app: 'web' })), pod('b', labelled({ 'cluster.x-k8s.io/drain': 'wait-completed' }))],
    rules: [drainRule('Drain', web, -5)],
    stages: [evicts('a'), waitsFor('b')],
  }),
  'drain-rule-first-decides': drained({ pods: [pod('a', labelled({ app: 'web' }))], rules: skipThenDrain }),
  'drain-rule-of-another-cluster': drained({
    pods: [pod('a', labelled({ app: 'web' }))],
    rules: [drainRule('Skip', { ...web, machines: [{ clusterSelector: { matchLabels: { no: 'such' } } }] })],
    stages: [evicts('a')],
  }),
  'drain-rule-of-this-cluster': drained({
    pods: [pod('a', labelled({ app: 'web' }))],
    rules: [
      drainRule('Skip', {
        ...web,
        machines: [
          {
            clusterSelector: { matchExpressions: [{ key: 'none', operator: 'DoesNotExist' }] },
            selector: { matchLabels: { 'cluster.x-k8s.io/cluster-name': clusterName } },
          },
        ],
      }),
    ],
  }),
  'drain-rule-by-namespace': drained({
    pods: [pod('a')],
    rules: [drainRule('Skip', { pods: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } } }] })],
  }),
  'drain-rule-of-all-pods': drained({
    pods: [pod('a'), pod('b', labelled({ app: 'web' }))],
    rules: [drainRule('WaitCompleted')],
    stages: [waitsFor('a', 'b')],
  }),
  'drain-excluded': drained({
    pods: [pod('a')],
    annotations: { [excluded]: '' },
    event: 'NodeVolumesDetached',
  }),
  'drain-excluded-later': drained({
    pods: [pod('a', labelled({ app: 'web' }))],
    before: createBudget,
    stages: [isBlocked((twin) => twin.patch(Machine, 'm', { metadata: { annotations: { [excluded]: '' } } }))],
    event: 'NodeVolumesDetached',
  }),
  'drain-timeout': drained({
    pods: [withGrace('a')],
    spec: { deletion: { nodeDrainTimeoutSeconds: 1 } },
    event: 'NodeVolumesDetached',
  }),
  'drain-timeout-later': drained({
    pods: [pod('a', labelled({ app: 'web' }))],
    before: createBudget,
    stages: [isBlocked((twin) => twin.patch(Machine, 'm', { spec: { deletion: { nodeDrainTimeoutSeconds: 1 } } }))],
    event: 'NodeVolumesDetached',
  }),
  'drain-disruption-budget': drained({
    pods: [pod('a', labelled({ app: 'web' }))],
    before: createBudget,
    stages: [isBlocked(deleteBudget), evicts('a')],
  }),
  'drain-eviction-denied': drained({ pods: [pod('a')], before: denyEvictions, stages: [evictionDenied, evicts('a')] }),
  'drain-terminating-namespace': drained({ pods: [pod('a')], before: createTerminatingNamespace, stages: [evicts('a')] }),
  'drain-grace-period': drained({ pods: [withGrace('a'), withGrace('b')], stages: [evicts('a', 'b')] }),
  'drain-finished-pod': drained({ pods: [pod('a')], before: finishPod, stages: [evicts('a')] }),
  'drain-wait-finished-pod': drained({
    pods: [pod('a', labelled({ 'cluster.x-k8s.io/drain': 'wait-completed' }))],
    before: finishPod,
    stages: [waitsFor('a')],
  }),
  'drain-unreachable-node': unreachable,
  'drain-unreachable-taint': drained({ pods: [pod('a')], before: taintedUnreachable, stages: [evicts('a')] }),
  'drain-cluster-deleted': clusterDeleted,
  'drain-control-plane-machine': controlPlaneMachine,
  'drain-volume-attachment': attached(
    '* VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume: pv',
  ),
  'drain-volume-of-claim': attached('* PersistentVolumeClaims: default/data', volume({ claimRef })),
  'drain-volume-without-claim': attached('* PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim: pv', volume()),
  'drain-volume-excluded': volumesExcluded,
  'drain-volume-of-daemonset': volumeOfSkippedPod((twin) => createDaemonSetPod(twin, withClaim)),
  'drain-volume-of-skipped-pod': volumeOfSkippedPod((twin) =>
    createInWorkload(twin, Pod, pod('a', { ...labelled({ 'cluster.x-k8s.io/drain': 'skip' }), spec: withClaim })),
  ),
  'drain-volume-in-use': inUse(
    'kubernetes.io/csi/csi^handle',
    '* Node with .status.volumesAttached entries not matching a PersistentVolume: kubernetes.io/csi/csi^handle',
  ),
  'drain-volume-in-use-of-claim': inUse(
    'kubernetes.io/csi/csi^handle',
    '* PersistentVolumeClaims: default/data',
    volume({ claimRef }),
  ),
  'drain-volume-of-another-plugin': inUse('kubernetes.io/nfs/x', ': kubernetes.io/nfs/x', volume({ claimRef })),
  'drain-volume-timeout': volumeTimeout,
}
