import { Cluster, Machine, MachineDrainRule } from '@capstan/api'
import { type Client, DaemonSet, type Input, type Kind, type KubeObject, Namespace, Node, Pod, unknownKind } from '@capstan/kube'
import { clusterName } from '../objects.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createReadyMachine } from './machine.ts'

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

interface DrainScenario {
  readonly pods: readonly Input<Pod>[]
  readonly rules?: readonly object[]
  readonly annotations?: { [key: string]: string }
  readonly spec?: object
  readonly before?: (twin: Twin) => Promise<void>
}

/** A Machine is deleted while Pods run on its Node; then the kubelet ends the Pods. */
const drained =
  ({ pods, rules = [], annotations = {}, spec = {}, before }: DrainScenario): Case =>
  async (twin) => {
    await createReadyMachine(twin, { annotations }, spec)
    await createInWorkload(twin, Pod, ...pods)
    await before?.(twin)
    for (const [index, rule] of rules.entries())
      await twin.create(MachineDrainRule, { metadata: { name: `rule-${index}` }, spec: rule } as never)
    await twin.delete(Machine, 'm')
    await twin.settle('the Machine is deleted')
    await removeEndedPods(twin)
    await twin.touch(Machine, 'm').catch(() => undefined)
    await twin.settle('Pods have ended')
  }

const labelled = (labels: object) => ({ metadata: { labels } })
const drainRule = (behavior: string, fields: object = {}, order?: number) => ({
  drain: { behavior, ...(order === undefined ? {} : { order }) },
  ...fields,
})
const web = { pods: [{ selector: { matchLabels: { app: 'web' } } }] }

const createBudget = (twin: Twin) =>
  createInWorkload(twin, PodDisruptionBudget, {
    metadata: { name: 'pdb', namespace: 'default' },
    spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'web' } } },
  } as never)

const clusterDeleted: Case = async (twin) => {
  await createReadyMachine(twin)
  await createInWorkload(twin, Pod, pod('a'))
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted')
}

const attached =
  (annotations: { [key: string]: string }): Case =>
  async (twin) => {
    await createReadyMachine(twin, { annotations })
    await twin.inWorkload(clusterName, attachVolume)
    await twin.delete(Machine, 'm')
    await twin.settle('the Machine is deleted while a volume is attached')
    await twin.inWorkload(clusterName, (client) => client.delete(VolumeAttachment, { name: 'va' }))
    await twin.touch(Machine, 'm').catch(() => undefined)
    await twin.settle('the volume is detached')
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
    await createReadyMachine(twin)
    const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'default', name: 'data' }
    await createInWorkload(twin, PersistentVolume, {
      metadata: { name: 'pv' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        csi: { driver: 'csi', volumeHandle: 'handle' },
        claimRef,
      },
    } as never)
    await start(twin)
    await twin.inWorkload(clusterName, attachVolume)
    await twin.delete(Machine, 'm')
    await twin.settle('the volume does not block the deletion')
  }

const attachVolume = async (client: Client): Promise<void> => {
  await client.create(VolumeAttachment, {
    metadata: { name: 'va' },
    spec: { attacher: 'csi', nodeName: 'm', source: { persistentVolumeName: 'pv' } },
  } as never)
  const body = { status: { attached: true } }
  await client.patch(VolumeAttachment, { name: 'va' }, { type: 'merge', body }, { subresource: 'status' })
}

const inUse =
  (volume: string): Case =>
  async (twin) => {
    await createReadyMachine(twin)
    const status = { volumesAttached: [{ name: volume, devicePath: '' }], volumesInUse: [volume] }
    await twin.inWorkload(clusterName, (client) =>
      client.patch(Node, { name: 'm' }, { type: 'merge', body: { status } }, { subresource: 'status', fieldManager: 'kubelet' }),
    )
    await twin.delete(Machine, 'm')
    await twin.settle('the Machine is deleted while a volume is attached')
    await twin.inWorkload(clusterName, (client) =>
      client.patch(
        Node,
        { name: 'm' },
        { type: 'merge', body: { status: { volumesAttached: null } } },
        { subresource: 'status', fieldManager: 'kubelet' },
      ),
    )
    await twin.touch(Machine, 'm').catch(() => undefined)
    await twin.settle('the volume is detached')
  }

const unreachable: Case = async (twin) => {
  await createReadyMachine(twin)
  await createInWorkload(twin, Pod, pod('a'))
  await twin.inWorkload(clusterName, (client) =>
    client.patch(
      Node,
      { name: 'm' },
      { type: 'merge', body: { spec: { taints: [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }] } } },
      { fieldManager: 'kubelet' },
    ),
  )
  await twin.settle('the Node is unreachable')
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is deleted')
}

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

const finishPod = (twin: Twin) =>
  twin.inWorkload(clusterName, (client) =>
    client.patch(
      Pod,
      { namespace: 'default', name: 'a' },
      { type: 'merge', body: { status: { phase: 'Succeeded' } } },
      { subresource: 'status', fieldManager: 'kubelet' },
    ),
  )

const volumeTimeout: Case = async (twin) => {
  await createReadyMachine(twin, {}, { deletion: { nodeVolumeDetachTimeoutSeconds: 1 } })
  await twin.inWorkload(clusterName, attachVolume)
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is deleted after the timeout', (objects) => !objects.some(({ kind }) => kind === 'Machine'))
}

export const drainCases: Cases = {
  'drain-pods': drained({ pods: [pod('a'), pod('b', { metadata: ownedBy('ReplicaSet') })] }),
  'drain-nothing': drained({ pods: [] }),
  'drain-many-pods': drained({ pods: Array.from({ length: 7 }, (_, index) => pod(`p${index}`)) }),
  'drain-daemonset-gone': drained({ pods: [pod('a', { metadata: ownedBy('DaemonSet') })] }),
  'drain-daemonset': drained({ pods: [], before: createDaemonSetPod }),
  'drain-mirror-pod': drained({ pods: [pod('a', { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } } })] }),
  'drain-empty-dir': drained({ pods: [pod('a', { spec: { volumes: [{ name: 'v', emptyDir: {} }] } })] }),
  'drain-label-skip': drained({ pods: [pod('a', labelled({ 'cluster.x-k8s.io/drain': 'skip' })), pod('b')] }),
  'drain-label-wait': drained({ pods: [pod('a', labelled({ 'cluster.x-k8s.io/drain': 'Wait-Completed' })), pod('b')] }),
  'drain-rule-skip': drained({ pods: [pod('a', labelled({ app: 'web' })), pod('b')], rules: [drainRule('Skip', web)] }),
  'drain-rule-wait': drained({ pods: [pod('a', labelled({ app: 'web' })), pod('b')], rules: [drainRule('WaitCompleted', web)] }),
  'drain-rule-order': drained({
    pods: [pod('a', labelled({ app: 'web' })), pod('b'), pod('c', labelled({ app: 'late' }))],
    rules: orderedRules,
  }),
  'drain-rule-of-another-cluster': drained({
    pods: [pod('a', labelled({ app: 'web' }))],
    rules: [drainRule('Skip', { ...web, machines: [{ clusterSelector: { matchLabels: { no: 'such' } } }] })],
  }),
  'drain-rule-by-namespace': drained({
    pods: [pod('a')],
    rules: [drainRule('Skip', { pods: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } } }] })],
  }),
  'drain-excluded': drained({ pods: [pod('a')], annotations: { 'machine.cluster.x-k8s.io/exclude-node-draining': '' } }),
  'drain-timeout': drained({ pods: [pod('a')], spec: { deletion: { nodeDrainTimeoutSeconds: 1 } } }),
  'drain-disruption-budget': drained({ pods: [pod('a', labelled({ app: 'web' }))], before: createBudget }),
  'drain-terminating-namespace': drained({ pods: [pod('a')], before: createTerminatingNamespace }),
  'drain-unreachable-node': unreachable,
  'drain-cluster-deleted': clusterDeleted,
  'drain-volume-attachment': attached({}),
  'drain-volume-excluded': attached({ 'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach': '' }),
  'drain-volume-of-daemonset': volumeOfSkippedPod((twin) => createDaemonSetPod(twin, withClaim)),
  'drain-volume-of-skipped-pod': volumeOfSkippedPod((twin) =>
    createInWorkload(twin, Pod, pod('a', { ...labelled({ 'cluster.x-k8s.io/drain': 'skip' }), spec: withClaim })),
  ),
  'drain-volume-in-use': inUse('kubernetes.io/csi/csi^handle'),
  'drain-volume-of-another-plugin': inUse('kubernetes.io/nfs/x'),
  'drain-rule-first-decides': drained({ pods: [pod('a', labelled({ app: 'web' }))], rules: skipThenDrain }),
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
  'drain-rule-of-all-pods': drained({
    pods: [pod('a'), pod('b', labelled({ app: 'web' }))],
    rules: [drainRule('WaitCompleted')],
  }),
  'drain-label-before-rule': drained({
    pods: [pod('a', labelled({ app: 'web', 'cluster.x-k8s.io/drain': 'skip' }))],
    rules: [drainRule('WaitCompleted', web)],
  }),
  'drain-label-unknown': drained({ pods: [pod('a', labelled({ 'cluster.x-k8s.io/drain': 'perhaps' }))] }),
  'drain-grace-period': drained({ pods: [withGrace('a'), withGrace('b')] }),
  'drain-wait-finished-pod': drained({
    pods: [pod('a', labelled({ 'cluster.x-k8s.io/drain': 'wait-completed' }))],
    before: finishPod,
  }),
  'drain-volume-timeout': volumeTimeout,
}
