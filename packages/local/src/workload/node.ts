/** Computes the Node that a simulated kubelet registers, and the status of this Node. Pure. */
import { NodeUninitializedTaint } from '@capstan/api'
import type { Input, Node } from '@capstan/kube'
import { equal, timestamp } from '@capstan/kube'
import type { Registration } from '../bootstrap/data.ts'

/** Properties of a simulated kubelet. */
export interface Kubelet {
  readonly nodeName: string
  readonly providerID: string
  /** Version of the kubelet, such as v1.36.0. */
  readonly version: string
  readonly role: 'control-plane' | 'worker'
  readonly addresses: readonly { type: string; address: string }[]
  /** Message about a simulated kubelet failure, for conditions; absent when the kubelet is healthy. */
  readonly failureMessage?: string | undefined
}

const ControlPlaneRole = 'node-role.kubernetes.io/control-plane'

/**
 * Returns the taint of a role, with which its Nodes register: for a control plane, kubeadm's taint; for a worker, the contract's taint
 * `node.cluster.x-k8s.io/uninitialized`, which core removes.
 */
export const roleTaint = (role: Kubelet['role']) =>
  role === 'control-plane' ? { key: ControlPlaneRole, effect: 'NoSchedule' as const } : NodeUninitializedTaint

/**
 * Returns the Node that the kubelet creates to register itself. `registration` is the bootstrap data; without it, the Node has only the
 * kubelet's own labels and the taint of its role.
 */
export function newNode(kubelet: Kubelet, registration: Registration | undefined, now: number): Input<Node> {
  const { nodeName, role } = kubelet
  return {
    metadata: {
      name: nodeName,
      labels: {
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/hostname': nodeName,
        'kubernetes.io/os': 'linux',
        ...(role === 'control-plane' ? { [ControlPlaneRole]: '' } : {}),
        ...registration?.nodeLabels,
      },
    },
    spec: { providerID: kubelet.providerID, taints: [...(registration?.nodeTaints ?? [roleTaint(role)])] },
    status: newStatus(kubelet, now),
  }
}

/** Returns the status that the kubelet reports; `undefined` when the Node has this status already, so that nothing is written. */
export function nodeStatus(node: Node, kubelet: Kubelet, now: number): Node['status'] | undefined {
  const reported = newStatus(kubelet, now)
  const currentConditions = node.status?.conditions ?? []
  const conditions = reported.conditions.map((condition) => {
    const currentCondition = currentConditions.find(({ type }) => type === condition.type)
    return currentCondition && currentCondition.status === condition.status && currentCondition.message === condition.message
      ? currentCondition
      : condition
  })
  const otherConditions = currentConditions.filter(({ type }) => !conditions.some((condition) => condition.type === type))
  const newNodeStatus = { ...node.status, ...reported, conditions: [...conditions, ...otherConditions] }
  return equal(newNodeStatus, node.status) ? undefined : newNodeStatus
}

function newStatus({ version, nodeName, addresses, failureMessage }: Kubelet, now: number) {
  const time = timestamp(now)
  const condition = (type: string, status: string, reason: string, message: string) => ({
    type,
    status,
    reason,
    message,
    lastHeartbeatTime: time,
    lastTransitionTime: time,
  })
  const resources = { cpu: '4', memory: '8Gi', pods: '110', 'ephemeral-storage': '40Gi' }
  return {
    addresses: [...addresses],
    capacity: resources,
    allocatable: resources,
    conditions: [
      condition('MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'),
      condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'),
      condition('PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'),
      failureMessage === undefined
        ? condition('Ready', 'True', 'KubeletReady', 'kubelet is posting ready status')
        : condition('Ready', 'False', 'KubeletNotReady', failureMessage),
    ],
    nodeInfo: {
      architecture: 'amd64',
      bootID: nodeName,
      containerRuntimeVersion: 'simulated://1',
      kernelVersion: 'simulated',
      kubeProxyVersion: version,
      kubeletVersion: version,
      machineID: nodeName,
      operatingSystem: 'linux',
      osImage: 'Capstan simulated machine',
      systemUUID: nodeName,
    },
  }
}
