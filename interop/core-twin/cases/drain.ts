/**
 * Cases of the drain of a Machine's Node, and of the volumes that the deletion of a Machine waits for.
 * Every case does the same with upstream's core and with Capstan's, and compares their objects after each step (`settle`).
 */
import { Cluster, Machine, MachineDrainRule, MachineSet } from '@capstan/api'
import {
  type Client,
  DaemonSet,
  getCondition,
  type Input,
  isTrue,
  type Kind,
  type KubeObject,
  Namespace,
  Node,
  Pod,
  unknownKind,
} from '@capstan/kube'
import { clusterName, machine, machineSet, named, nodeCondition } from '../objects.ts'
import { hostedControlPlane } from '../providers.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createDrainableMachine, createReadyCluster, isDeletedAfter, isInStage, isGone } from './machine.ts'
import { createWorkerTemplates } from './machine-set.ts'
import { createPolicy, endPolicy } from './policy.ts'
import { reportNodeStatus } from '../side.ts'

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

/** Returns a Pod, by default in the namespace `default` and on the Node `m`. */
export const pod = (name: string, fields: { metadata?: object; spec?: object } = {}): Input<Pod> =>
  ({
    metadata: { name, namespace: 'default', ...fields.metadata },
    spec: { nodeName: 'm', containers: [{ name: 'c', image: 'i' }], ...fields.spec },
  }) as unknown as Input<Pod>

const ownedBy = (kind: string) => ({
  ownerReferences: [{ apiVersion: 'apps/v1', kind, name: 'x', uid: 'x', controller: true }],
})

export const createInWorkload = <T extends KubeObject>(twin: Twin, kind: Kind<T>, ...objects: readonly Input<T>[]) =>
  twin.inWorkload(clusterName, async (client) => {
    for (const object of objects) await client.create(kind, object)
  })

/** Removes all Pods that are being deleted, as the kubelet does when their containers have stopped. */
export const removeEndedPods = (twin: Twin) =>
  twin.inWorkload(clusterName, async (client: Client) => {
    const { items } = await client.list(Pod)
    for (const { metadata } of items)
      if (metadata.deletionTimestamp !== undefined)
        await client.delete(Pod, { namespace: metadata.namespace!, name: metadata.name }, { gracePeriodSeconds: 0 })
  })

/** A state in which the drain waits, and the action after which the drain continues. */
interface Stage {
  /** Name of the compared step. */
  readonly step: string
  /** Part of the message of the Deleting condition. */
  readonly message: string
  readonly end: (twin: Twin) => Promise<void>
}

const podsText = (names: readonly string[]) =>
  `${names.length === 1 ? 'Pod' : 'Pods'} ${names.map((name) => `default/${name}`).join(', ')}`

/** The drain evicts Pods. Then the kubelet removes them. */
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
  /** Specs of the MachineDrainRules. Default: none. */
  readonly rules?: readonly object[]
  /** Annotations of the Machine. Default: none. */
  readonly annotations?: { [key: string]: string }
  /** Further fields of the Machine's spec. */
  readonly spec?: object
  /** Called after the Pods are created and before the Machine is deleted. */
  readonly before?: (twin: Twin) => Promise<void>
  /** States of the drain, in order. Default: none. */
  readonly stages?: readonly Stage[]
  /** Reason of an event that the deletion records. Default: SuccessfulDrainNode. */
  readonly event?: string
  /** Names of the Pods that are not evicted, in alphabetical order. Default: none. */
  readonly remaining?: readonly string[]
}

const isNotEvicted = ({ kind, metadata }: KubeObject): boolean => kind === 'Pod' && metadata.deletionTimestamp === undefined

/** Deletes a Machine after the Pods of the scenario are created, and checks the stages of the drain of its Node. */
const drained =
  ({
    pods,
    rules = [],
    annotations = {},
    spec = {},
    before,
    stages = [],
    event = 'SuccessfulDrainNode',
    remaining = [],
  }: DrainScenario): Case =>
  async (twin) => {
    await createDrainableMachine(twin, { annotations }, spec)
    await createInWorkload(twin, Pod, ...pods)
    await before?.(twin)
    for (const [index, rule] of rules.entries())
      await twin.create(MachineDrainRule, { metadata: { name: `rule-${index}` }, spec: rule } as never)
    await twin.settle('the Pods and MachineDrainRules are created')
    await twin.delete(Machine, 'm')
    for (const { step, message, end } of stages) {
      await twin.settle(step, isInStage('DrainingNode', message))
      await end(twin)
    }
    await twin.settle('the Machine is deleted', (objects) => {
      const notEvicted = objects.filter(isNotEvicted).map(({ metadata }) => metadata.name)
      return isDeletedAfter(event)(objects) && notEvicted.sort().join() === remaining.join()
    })
  }

const volumesExcluded = 'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach'
const excluded = 'machine.cluster.x-k8s.io/exclude-node-draining'
const labelled = (labels: object) => ({ metadata: { labels } })
const drainRule = (behavior: string, fields: object = {}, order?: number) => ({
  drain: { behavior, ...(order === undefined ? {} : { order }) },
  ...fields,
})
const web = { pods: [{ selector: { matchLabels: { app: 'web' } } }] }

/** A PodDisruptionBudget blocks the eviction of the Pod `a`. Then `end` lets the drain continue. */
const budgetBlocks = (end: Stage['end']): Stage => ({
  step: 'the disruption budget blocks',
  message: "* Pod default/a: cannot evict pod as it would violate the pod's disruption budget.",
  end,
})

export const deleteBudget = (twin: Twin, name = 'pdb') =>
  twin.inWorkload(clusterName, (client) => client.delete(PodDisruptionBudget, { namespace: 'default', name }))

/**
 * Creates a PodDisruptionBudget that blocks the eviction of ready Pods with the label `app: web`, and makes all Pods of the
 * namespace `default` ready.
 */
export const createBudget = (twin: Twin, name = 'pdb') =>
  twin.inWorkload(clusterName, async (client) => {
    await client.create(PodDisruptionBudget, {
      metadata: { name, namespace: 'default' },
      spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'web' } } },
    } as never)
    const counts = { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 }
    const budgetStatus = { type: 'merge', body: { status: { observedGeneration: 1, ...counts } } } as const
    await client.patch(PodDisruptionBudget, { namespace: 'default', name }, budgetStatus, { subresource: 'status' })
    const ready = {
      type: 'merge',
      body: { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
    } as const
    const { items } = await client.list(Pod, { namespace: 'default' })
    for (const { metadata } of items)
      await client.patch(Pod, { namespace: 'default', name: metadata.name }, ready, {
        subresource: 'status',
        fieldManager: 'kubelet',
      })
  })

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

/**
 * A VolumeAttachment of the PersistentVolume `pv` blocks the deletion of a Machine until the volume is detached.
 *
 * @param message part of the message of the Deleting condition
 * @param volumes the PersistentVolumes that exist
 */
const attached =
  (message: string, ...volumes: readonly Input<KubeObject>[]): Case =>
  async (twin) => {
    await createDrainableMachine(twin)
    await createInWorkload(twin, PersistentVolume, ...volumes)
    await twin.inWorkload(clusterName, (client) => attachVolume(client))
    await twin.delete(Machine, 'm')
    await twin.settle('a volume is attached', isInStage('WaitingForVolumeDetach', message))
    await twin.inWorkload(clusterName, (client) => client.delete(VolumeAttachment, { name: 'va' }))
    await twin.settle('the volume is detached', isDeletedAfter('NodeVolumesDetached'))
  }

const volumeExcluded: Case = async (twin) => {
  await createDrainableMachine(twin, { annotations: { [volumesExcluded]: '' } })
  await twin.inWorkload(clusterName, (client) => attachVolume(client))
  await twin.delete(Machine, 'm')
  await twin.settle('the volume does not block the deletion', isDeletedAfter('SuccessfulDrainNode'))
}

/** Creates a DaemonSet and a Pod of it. */
export const createDaemonSetPod = async (twin: Twin, spec: object = {}): Promise<void> => {
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

/** A volume stays attached, because the drain skips the Pod that uses it. The volume does not block the deletion of the Machine. */
const volumeOfSkippedPod =
  (start: (twin: Twin) => Promise<void>): Case =>
  async (twin) => {
    await createDrainableMachine(twin)
    await createInWorkload(twin, PersistentVolume, volume({ claimRef }))
    await start(twin)
    await twin.inWorkload(clusterName, (client) => attachVolume(client))
    await twin.delete(Machine, 'm')
    await twin.settle('the volume does not block the deletion', isDeletedAfter('NodeVolumesDetached'))
  }

const attachVolume = async (client: Client, source: object = { persistentVolumeName: 'pv' }): Promise<void> => {
  await client.create(VolumeAttachment, {
    metadata: { name: 'va' },
    spec: { attacher: 'csi', nodeName: 'm', source },
  } as never)
  const body = { status: { attached: true } }
  await client.patch(VolumeAttachment, { name: 'va' }, { type: 'merge', body }, { subresource: 'status' })
}

/**
 * The status of a Node lists the attached volume `name`, which blocks the deletion of the Machine until the volume is detached.
 *
 * @param message part of the message of the Deleting condition
 * @param volumes the PersistentVolumes that exist
 */
const attachedInNodeStatus =
  (name: string, message: string, ...volumes: readonly Input<KubeObject>[]): Case =>
  async (twin) => {
    await createDrainableMachine(twin)
    await createInWorkload(twin, PersistentVolume, ...volumes)
    await patchNodeStatus(twin, { volumesAttached: [{ name, devicePath: '' }], volumesInUse: [name] })
    await twin.settle('the Node reports an attached volume')
    await twin.delete(Machine, 'm')
    await twin.settle('a volume is attached', isInStage('WaitingForVolumeDetach', message))
    await patchNodeStatus(twin, { volumesAttached: null })
    await twin.settle('the volume is detached', isDeletedAfter('NodeVolumesDetached'))
  }

const patchNodeStatus = (twin: Twin, status: object) =>
  twin.inWorkload(clusterName, (client) => reportNodeStatus(client, 'm', status))

/** Writes the Node conditions that the node controller writes when the kubelet has stopped. */
const stopKubelet = async (twin: Twin) => {
  const report = { reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' }
  const conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) =>
    nodeCondition(type, 'Unknown', report),
  )
  await patchNodeStatus(twin, { conditions })
  await twin.settle('the Node is unreachable', (objects) => objects.some(hasUnreachableNode))
}

const hasUnreachableNode = (object: KubeObject): boolean =>
  object.kind === 'Machine' && getCondition(object as Machine, 'NodeReady')?.status === 'Unknown'

/** The Pods of an unreachable Node never terminate, and its volumes stay attached, but the Machine is deleted. */
const unreachable: Case = async (twin) => {
  await createDrainableMachine(twin)
  await createInWorkload(twin, Pod, withGrace('a'))
  await twin.inWorkload(clusterName, (client) => attachVolume(client))
  await stopKubelet(twin)
  await twin.delete(Machine, 'm')
  await twin.settle('neither Pod nor volume blocks the deletion', isDeletedAfter('NodeVolumesDetached'))
}

/** Sets the taint of an unreachable Node as its only taint, but does not change the conditions of the Node. */
const taintUnreachable = (twin: Twin) =>
  twin.inWorkload(clusterName, (client) =>
    client.patch(
      Node,
      { name: 'm' },
      { type: 'merge', body: { spec: { taints: [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }] } } },
      { fieldManager: 'kubelet' },
    ),
  )

/** Creates a Pod, then deletes its namespace. A policy prevents the namespace controller from deleting the Pod. */
const createTerminatingNamespace = (twin: Twin) =>
  twin.inWorkload(clusterName, async (client) => {
    const denied = { group: '', resource: 'pods', operation: 'DELETE', namespace: 'terminating' } as const
    await client.create(Namespace, { metadata: { name: 'terminating' } })
    await createPolicy(client, 'keep', denied)
    await client.create(Pod, pod('held', { metadata: { namespace: 'terminating' } }))
    await client.delete(Namespace, { name: 'terminating' })
  })

const namespaceIsTerminating: Stage = {
  step: 'a Pod in a terminating namespace cannot be evicted',
  message: '* Pod terminating/held: failed to evict Pod, Cannot evict pod from terminating namespace',
  end: (twin) =>
    twin.inWorkload(clusterName, async (client) => {
      await endPolicy(client, 'keep')
      await client.delete(Pod, { namespace: 'terminating', name: 'held' })
    }),
}

const bothPodsAreDeleted: Stage = {
  step: 'both Pods are being deleted',
  message: '* Pods default/a, terminating/held: deletionTimestamp set',
  end: removeEndedPods,
}

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
  await twin.inWorkload(clusterName, (client) => attachVolume(client))
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

const denyCordon = (twin: Twin) =>
  twin.inWorkload(clusterName, (client) =>
    createPolicy(client, 'cordon', {
      group: '',
      resource: 'nodes',
      operation: 'UPDATE',
      accepted: '!has(object.spec.unschedulable) || !object.spec.unschedulable',
    }),
  )

const cordonDenied: Stage = {
  step: 'the Node cannot be cordoned',
  message: 'Error draining Node',
  end: (twin) => twin.inWorkload(clusterName, (client) => endPolicy(client, 'cordon')),
}

/** A VolumeAttachment of an inline volume names no PersistentVolume. */
const inlineVolume: Case = async (twin) => {
  await createDrainableMachine(twin)
  const inlineVolumeSpec = {
    accessModes: ['ReadWriteOnce'],
    capacity: { storage: '1Gi' },
    csi: { driver: 'csi', volumeHandle: 'h' },
  }
  await twin.inWorkload(clusterName, (client) => attachVolume(client, { inlineVolumeSpec }))
  await twin.delete(Machine, 'm')
  await twin.settle('the volume is unknown', isInStage('WaitingForVolumeDetach', 'Error waiting'))
  await twin.inWorkload(clusterName, (client) => client.delete(VolumeAttachment, { name: 'va' }))
  await twin.settle('the volume is detached', isDeletedAfter('NodeVolumesDetached'))
}

/**
 * Sets `finalizers` on the infrastructure of a Machine. Then a user deletes the infrastructure, and after it the Machine. Finalizers keep the
 * infrastructure in deletion until the case removes them.
 */
const infrastructureDeleted =
  (finalizers: readonly string[]): Case =>
  async (twin) => {
    await createDrainableMachine(twin)
    await createInWorkload(twin, Pod, pod('a'))
    await twin.patch(stub.machine, 'm', { metadata: { finalizers } })
    await twin.delete(stub.machine, 'm')
    await twin.settle('a user has deleted the infrastructure')
    await twin.delete(Machine, 'm')
    if (finalizers.length > 0) {
      await twin.settle('the infrastructure blocks the deletion', isInStage('WaitingForInfrastructureDeletion'))
      await twin.patch(stub.machine, 'm', { metadata: { finalizers: null } })
    }
    await twin.settle(
      'the Machine is deleted without a drain',
      (objects) => isGone('Machine')(objects) && isGone('Node')(objects),
    )
  }

/**
 * The infrastructure of a Machine blocks the deletion of the Machine. Pods and volumes do not, because of annotations in `metadata` or
 * timeouts in `spec`.
 */
const infrastructureBlocks =
  (metadata: object, spec: object): Case =>
  async (twin) => {
    await createDrainableMachine(twin, metadata, spec)
    await createInWorkload(twin, Pod, withGrace('a'))
    await twin.inWorkload(clusterName, (client) => attachVolume(client))
    await twin.patch(stub.machine, 'm', { metadata: { finalizers: ['twin.capstan.dev/hold'] } })
    await twin.delete(Machine, 'm')
    await twin.settle('the infrastructure blocks the deletion', isInStage('WaitingForInfrastructureDeletion'))
    await twin.patch(stub.machine, 'm', { metadata: { finalizers: null } })
    await twin.settle('the Machine is deleted', (objects) => isGone('Machine')(objects) && isGone('Node')(objects))
  }

/** A Machine is paused while its Node is drained. */
const paused: Case = async (twin) => {
  const annotation = (value: string | null) => ({ metadata: { annotations: { 'cluster.x-k8s.io/paused': value } } })
  await createDrainableMachine(twin)
  await createInWorkload(twin, Pod, pod('a'))
  await twin.delete(Machine, 'm')
  await twin.settle('a Pod is evicted', isInStage('DrainingNode', 'deletionTimestamp set'))
  await twin.patch(Machine, 'm', annotation(''))
  await twin.settle('the Machine is paused', (objects) => objects.some(isPaused))
  await removeEndedPods(twin)
  await twin.patch(Machine, 'm', annotation(null))
  await twin.settle('the Machine is deleted', isDeletedAfter('SuccessfulDrainNode'))
}

const isPaused = (object: KubeObject): boolean => object.kind === 'Machine' && isTrue(object as Machine, 'Paused')

/** A rule is created while the Node is drained. */
const ruleCreated: Stage['end'] = (twin) =>
  twin.create(MachineDrainRule, { metadata: { name: 'late' }, spec: drainRule('Skip', web) } as never)

/** A MachineSet is scaled down, then deleted, while a budget blocks the drain of its Nodes. */
const machineSetScaledDown: Case = async (twin) => {
  await twin.setReports({ controlPlane: hostedControlPlane })
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { replicas: 2 }))
  await twin.settle('two Machines run', (objects) => objects.filter(hasNode).length === 2)
  await twin.inWorkload(clusterName, async (client) => {
    const { items } = await client.list(Node)
    for (const { metadata } of items)
      await client.create(Pod, pod(`on-${metadata.name}`, { ...labelled({ app: 'web' }), spec: { nodeName: metadata.name } }))
  })
  await createBudget(twin)
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 1 } })
  await twin.settle('the drain of one Node is blocked', isInStage('DrainingNode', 'disruption budget'))
  await twin.delete(MachineSet, 'ms')
  await twin.settle(
    'the drains of both Nodes are blocked',
    (objects) => objects.filter((object) => isInStage('DrainingNode', 'disruption budget')([object])).length === 2,
  )
  await deleteBudget(twin)
  await twin.settle(
    'both Pods are evicted',
    (objects) => objects.filter((object) => isInStage('DrainingNode', 'deletionTimestamp set')([object])).length === 2,
  )
  await removeEndedPods(twin)
  await twin.settle('the MachineSet is deleted', (objects) => isGone('Machine')(objects) && isGone('MachineSet')(objects))
}

/** A control plane Machine is deleted while another one remains. */
const controlPlaneMachine =
  (before: (twin: Twin) => Promise<void>): Case =>
  async (twin) => {
    await createReadyCluster(twin)
    const labels = { 'cluster.x-k8s.io/control-plane': '' }
    for (const name of ['m', 'n']) {
      await twin.create(stub.config, named(name, { spec: {} }))
      await twin.create(stub.machine, named(name, { spec: {} }))
      await twin.create(Machine, { ...machine(name), metadata: { name, labels } })
    }
    await createInWorkload(twin, Pod, pod('a'), pod('b', { spec: { nodeName: 'n' } }))
    await twin.settle('both Machines run', (objects) => objects.filter(hasNode).length === 2)
    await before(twin)
    await twin.delete(Machine, 'm')
    await twin.settle('a Pod of one Node is evicted', isInStage('DrainingNode', 'deletionTimestamp set'))
    await removeEndedPods(twin)
    await twin.settle('one Machine is deleted', (objects) => objects.filter(hasNode).length === 1)
  }

const hasNode = (object: KubeObject): boolean => object.kind === 'Machine' && (object as Machine).status?.nodeRef !== undefined

export const drainCases: Cases = {
  'drain-pods': drained({
    pods: [pod('a'), pod('b', { metadata: ownedBy('ReplicaSet') })],
    stages: [evicts('a', 'b')],
  }),
  'drain-no-pods': drained({ pods: [] }),
  'drain-pod-of-another-node': drained({ pods: [pod('a', { spec: { nodeName: 'other' } })], remaining: ['a'] }),
  'drain-many-pods': drained({
    pods: Array.from({ length: 7 }, (_, index) => pod(`p${index}`)),
    stages: [
      { ...evicts('p0', 'p1', 'p2'), message: '* Pods default/p0, default/p1, default/p2, ... (4 more): deletionTimestamp' },
    ],
  }),
  'drain-daemonset-gone': drained({ pods: [pod('a', { metadata: ownedBy('DaemonSet') })], stages: [evicts('a')] }),
  'drain-daemonset': drained({ pods: [pod('a')], before: createDaemonSetPod, stages: [evicts('a')], remaining: ['agent'] }),
  'drain-daemonset-finished': drained({ pods: [], before: finishDaemonSetPod }),
  'drain-mirror-pod': drained({
    pods: [pod('a', { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } } }), pod('b')],
    stages: [evicts('b')],
    remaining: ['a'],
  }),
  'drain-empty-dir': drained({
    pods: [pod('a', { spec: { volumes: [{ name: 'v', emptyDir: {} }] } })],
    stages: [evicts('a')],
  }),
  'drain-label-skip': drained({
    pods: [pod('a', labelled({ 'cluster.x-k8s.io/drain': 'skip' })), pod('b')],
    stages: [evicts('b')],
    remaining: ['a'],
  }),
  'drain-label-wait': drained({
    pods: [pod('a', labelled({ 'cluster.x-k8s.io/drain': 'Wait-Completed' })), pod('b')],
    stages: [evicts('b'), waitsFor('a')],
  }),
  'drain-label-unknown': drained({
    pods: [pod('a', labelled({ 'cluster.x-k8s.io/drain': 'perhaps' }))],
    stages: [evicts('a')],
  }),
  'drain-label-overrides-rule': drained({
    pods: [pod('a', labelled({ app: 'web', 'cluster.x-k8s.io/drain': 'skip' }))],
    rules: [drainRule('WaitCompleted', web)],
    remaining: ['a'],
  }),
  'drain-rule-skip': drained({
    pods: [pod('a', labelled({ app: 'web' })), pod('b')],
    rules: [drainRule('Skip', web)],
    stages: [evicts('b')],
    remaining: ['a'],
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
  'drain-rule-before-wait-label': drained({
    pods: [pod('a', labelled({ app: 'web' })), pod('b', labelled({ 'cluster.x-k8s.io/drain': 'wait-completed' }))],
    rules: [drainRule('Drain', web, -5)],
    stages: [evicts('a'), waitsFor('b')],
  }),
  'drain-rule-first-decides': drained({ pods: [pod('a', labelled({ app: 'web' }))], rules: skipThenDrain, remaining: ['a'] }),
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
    remaining: ['a'],
  }),
  'drain-rule-by-namespace': drained({
    pods: [pod('a')],
    rules: [drainRule('Skip', { pods: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } } }] })],
    remaining: ['a'],
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
    remaining: ['a'],
  }),
  'drain-excluded-later': drained({
    pods: [pod('a', labelled({ app: 'web' }))],
    before: (twin) => createBudget(twin),
    stages: [budgetBlocks((twin) => twin.patch(Machine, 'm', { metadata: { annotations: { [excluded]: '' } } }))],
    event: 'NodeVolumesDetached',
    remaining: ['a'],
  }),
  'drain-timeout': drained({
    pods: [withGrace('a')],
    spec: { deletion: { nodeDrainTimeoutSeconds: 1 } },
    event: 'NodeVolumesDetached',
  }),
  'drain-timeout-later': drained({
    pods: [pod('a', labelled({ app: 'web' }))],
    before: (twin) => createBudget(twin),
    stages: [budgetBlocks((twin) => twin.patch(Machine, 'm', { spec: { deletion: { nodeDrainTimeoutSeconds: 1 } } }))],
    event: 'NodeVolumesDetached',
    remaining: ['a'],
  }),
  'drain-disruption-budget': drained({
    pods: [pod('a', labelled({ app: 'web' }))],
    before: (twin) => createBudget(twin),
    stages: [budgetBlocks((twin) => deleteBudget(twin)), evicts('a')],
  }),
  'drain-eviction-denied': drained({ pods: [pod('a')], before: denyEvictions, stages: [evictionDenied, evicts('a')] }),
  'drain-evictions-denied': drained({
    pods: Array.from({ length: 7 }, (_, index) => pod(`p${index}`)),
    before: denyEvictions,
    stages: [
      { ...evictionDenied, message: '* 2 Pods with other issues' },
      { ...evicts('p0'), message: '... (4 more)' },
    ],
  }),
  'drain-two-budgets': drained({
    pods: [pod('a', labelled({ app: 'web' }))],
    before: async (twin) => {
      await createBudget(twin)
      await createBudget(twin, 'pdb-2')
    },
    stages: [
      { ...budgetBlocks((twin) => deleteBudget(twin)), message: 'failed to evict Pod, ' },
      budgetBlocks((twin) => deleteBudget(twin, 'pdb-2')),
      evicts('a'),
    ],
  }),
  'drain-cordon-denied': drained({ pods: [pod('a')], before: denyCordon, stages: [cordonDenied, evicts('a')] }),
  'drain-rule-created': drained({
    pods: [pod('a', labelled({ app: 'web' }))],
    before: (twin) => createBudget(twin),
    stages: [budgetBlocks(ruleCreated)],
    remaining: ['a'],
  }),
  'drain-terminating-namespace': drained({
    pods: [pod('a')],
    before: createTerminatingNamespace,
    stages: [namespaceIsTerminating, bothPodsAreDeleted],
  }),
  'drain-grace-period': drained({ pods: [withGrace('a'), withGrace('b')], stages: [evicts('a', 'b')] }),
  'drain-finished-pod': drained({ pods: [pod('a')], before: finishPod }),
  'drain-wait-finished-pod': drained({
    pods: [pod('a', labelled({ 'cluster.x-k8s.io/drain': 'wait-completed' }))],
    before: finishPod,
    stages: [waitsFor('a')],
  }),
  'drain-unreachable-node': unreachable,
  'drain-unreachable-taint': drained({ pods: [pod('a')], before: taintUnreachable, stages: [evicts('a')] }),
  'drain-cluster-deleted': clusterDeleted,
  'drain-control-plane-machine': controlPlaneMachine(async () => {}),
  'drain-control-plane-missing': controlPlaneMachine(async (twin) => {
    await twin.delete(stub.controlPlane, clusterName)
    await twin.settle('the control plane is deleted', isGone('StubControlPlane'))
  }),
  'drain-timeouts-infrastructure-blocks': infrastructureBlocks(
    {},
    { deletion: { nodeDrainTimeoutSeconds: 1, nodeVolumeDetachTimeoutSeconds: 1 } },
  ),
  'drain-excluded-infrastructure-blocks': infrastructureBlocks({ annotations: { [excluded]: '', [volumesExcluded]: '' } }, {}),
  'drain-infrastructure-gone': infrastructureDeleted([]),
  'drain-infrastructure-deleting': infrastructureDeleted(['twin.capstan.dev/hold']),
  'drain-paused': paused,
  'drain-machineset-scaled-down': machineSetScaledDown,
  'drain-volume-attachment': attached(
    '* VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume: pv',
  ),
  'drain-volume-of-claim': attached('* PersistentVolumeClaims: default/data', volume({ claimRef })),
  'drain-volume-without-claim': attached('* PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim: pv', volume()),
  'drain-volume-inline': inlineVolume,
  'drain-volume-excluded': volumeExcluded,
  'drain-volume-of-daemonset': volumeOfSkippedPod((twin) => createDaemonSetPod(twin, withClaim)),
  'drain-volume-of-skipped-pod': volumeOfSkippedPod((twin) =>
    createInWorkload(twin, Pod, pod('a', { ...labelled({ 'cluster.x-k8s.io/drain': 'skip' }), spec: withClaim })),
  ),
  'drain-volume-in-use': attachedInNodeStatus(
    'kubernetes.io/csi/csi^handle',
    '* Node with .status.volumesAttached entries not matching a PersistentVolume: kubernetes.io/csi/csi^handle',
  ),
  'drain-volume-in-use-of-claim': attachedInNodeStatus(
    'kubernetes.io/csi/csi^handle',
    '* PersistentVolumeClaims: default/data',
    volume({ claimRef }),
  ),
  'drain-volume-of-another-plugin': attachedInNodeStatus('kubernetes.io/nfs/x', ': kubernetes.io/nfs/x', volume({ claimRef })),
  'drain-volume-timeout': volumeTimeout,
}
