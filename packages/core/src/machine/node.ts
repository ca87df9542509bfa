import { InfraMachineContract, MachineConditions, type MachineNodeInfo } from '@capstan/api'
import { proceed, wait } from '@capstan/controller'
import { type Condition, getCondition, isDeleting, isTrue, keyOf, type NewCondition, Node, timestamp } from '@capstan/kube'
import { failsForLonger, type Health, Timing, type WorkloadCluster } from '../cluster-cache/accessor.ts'
import { externalOf, read } from '../external/observed.ts'
import { SeeLogs } from '../see-logs.ts'
import { nodePatch } from './node-metadata.ts'
import type { MachineIO, MachinePhase, MachineScope, ObservedNode } from './scope.ts'

/** Finds the Node of the Machine by its providerID, reports it in the status, and syncs labels, annotations and taints to it. */
export const node: MachinePhase = async (scope, io) => {
  const { machine, cluster } = scope
  scope.node = observeNode(scope, io)
  switch (scope.node.state) {
    case 'unread':
    case 'noProviderID':
      return wait('a providerID to find the Node by')
    case 'disconnected':
      return wait('connection to the workload cluster is down')
    case 'missing':
      return isDeleting(machine) ? proceed() : wait(`a Node with spec.providerID ${machine.spec.providerID}`)
    case 'found':
  }

  const status = (machine.status ??= {})
  const { metadata, status: nodeStatus } = scope.node.node
  if (!status.nodeRef) {
    status.nodeRef = { name: metadata.name }
    io.events.event(machine, 'Normal', 'SuccessfulSetNodeRef', metadata.name)
  }
  if (nodeStatus?.nodeInfo) status.nodeInfo = { ...emptyNodeInfo, ...nodeStatus.nodeInfo }

  const infra = externalOf(scope.infrastructure)
  const patch = nodePatch(scope.node.node, {
    ...scope,
    isInterruptible: infra !== undefined && read(infra, InfraMachineContract.interruptible) === true,
    settings: io.settings,
  })
  if (!patch) return proceed()
  const { client } = io.clusters.connection(keyOf(cluster))!
  // The resourceVersion is an optimistic lock: several writers change taints.
  const body = { ...patch.body, metadata: { ...patch.body.metadata, resourceVersion: metadata.resourceVersion } }
  scope.node = {
    state: 'found',
    node: await client.patch(Node, { name: metadata.name }, { type: 'merge', body }, { signal: io.signal }),
  }
  if (patch.becomesInterruptible) {
    io.events.event(machine, 'Normal', 'SuccessfulSetInterruptibleNodeLabel', metadata.name)
  }
  return proceed()
}

/** Missing nodeInfo fields default to the empty string: the Machine's schema requires every field. */
const emptyNodeInfo: MachineNodeInfo = {
  architecture: '',
  bootID: '',
  containerRuntimeVersion: '',
  kernelVersion: '',
  kubeProxyVersion: '',
  kubeletVersion: '',
  machineID: '',
  operatingSystem: '',
  osImage: '',
  systemUUID: '',
}

function observeNode({ machine, cluster }: MachineScope, io: MachineIO): ObservedNode {
  const { providerID } = machine.spec
  const connection = io.clusters.connection(keyOf(cluster))
  // As upstream, a missing connection to an initialized cluster is reported even before the Machine has a providerID.
  if (!connection && (providerID || isTrue(cluster, 'ControlPlaneInitialized'))) return { state: 'disconnected' }
  if (!connection || !providerID) return { state: 'noProviderID' }
  try {
    const node = nodeByProviderID(connection, providerID)
    return node ? { state: 'found', node } : { state: 'missing' }
  } catch (err) {
    io.events.event(machine, 'Warning', 'Failed to retrieve Node by ProviderID', (err as Error).message)
    throw err
  }
}

/** Returns the Node with a provider ID, if there is one. @throws Error when several Nodes have the provider ID */
export function nodeByProviderID(workload: WorkloadCluster, providerID: string): Node | undefined {
  const nodes = workload.nodesByProviderID(providerID)
  if (nodes.length > 1) throw new Error(`unexpectedly found more than one Node matching the providerID ${providerID}`)
  return nodes[0]
}

/** Inputs of the Node conditions. */
export interface NodeReport extends Pick<MachineScope, 'machine' | 'cluster' | 'node'> {
  readonly health: Health
  /** Milliseconds of failed probes after which the conditions become Unknown. */
  readonly gracePeriod: number
  /** Milliseconds since the Unix epoch. */
  readonly now: number
}

/**
 * Returns the NodeReady and NodeHealthy conditions. In two cases, leaves out conditions that the Machine already has, so that they keep
 * their values. Both require that the infrastructure is provisioned and the control plane is initialized. First case: no probe has
 * succeeded, and fewer than `Timing.failuresToDisconnect` failures were counted. Second case: there is no connection, but the probes have
 * not failed for longer than the grace period. Pure.
 */
export function nodeConditions(report: NodeReport): NewCondition[] {
  const { machine, cluster, node, health, gracePeriod, now } = report
  const { NodeReady, NodeHealthy } = MachineConditions
  type SharedReason = 'InspectionFailed' | 'ConnectionDown' | 'InternalError' | 'NodeDeleted' | 'NodeDoesNotExist'
  const bothConditions = (status: 'unknown' | 'false', reason: SharedReason, message: string) => [
    NodeReady[status](reason, message),
    NodeHealthy[status](reason, message),
  ]
  const unlessReported = (conditions: NewCondition[]) =>
    conditions.filter(({ type }) => getCondition(machine, type) === undefined)

  if (!cluster.status?.initialization?.infrastructureProvisioned) {
    return bothConditions(
      'unknown',
      'InspectionFailed',
      'Waiting for Cluster status.initialization.infrastructureProvisioned to be true',
    )
  }
  if (!isTrue(cluster, 'ControlPlaneInitialized')) {
    return bothConditions('unknown', 'InspectionFailed', 'Waiting for Cluster control plane to be initialized')
  }
  if (health.lastProbeSuccess === undefined && health.consecutiveFailures < Timing.failuresToDisconnect) {
    return unlessReported(bothConditions('unknown', 'ConnectionDown', 'Remote connection not established yet'))
  }
  const lastProbeText =
    health.lastProbeSuccess === undefined ? '' : `Last successful probe at ${timestamp(health.lastProbeSuccess)}`
  const initialized = Date.parse(getCondition(cluster, 'ControlPlaneInitialized')?.lastTransitionTime ?? '') || 0
  if (failsForLonger(health, gracePeriod, { now, since: initialized })) {
    return bothConditions('unknown', 'ConnectionDown', lastProbeText)
  }

  const nodeName = machine.status?.nodeRef?.name
  switch (node.state) {
    case 'disconnected':
      return unlessReported(bothConditions('unknown', 'ConnectionDown', lastProbeText))
    case 'unread':
      return bothConditions('unknown', 'InternalError', SeeLogs)
    case 'found':
      return [nodeReadyCondition(node.node), nodeHealthyCondition(node.node)]
    case 'missing':
    case 'noProviderID':
      if (isDeleting(machine)) {
        return nodeName
          ? bothConditions('false', 'NodeDeleted', `Node ${nodeName} has been deleted`)
          : bothConditions('unknown', 'NodeDoesNotExist', 'Node does not exist')
      }
      if (nodeName)
        return bothConditions('false', 'NodeDeleted', `Node ${nodeName} has been deleted while the Machine still exists`)
      return bothConditions(
        'unknown',
        'InspectionFailed',
        machine.spec.providerID
          ? `Waiting for a Node with spec.providerID ${machine.spec.providerID} to exist`
          : `Waiting for ${machine.spec.infrastructureRef.kind} to report spec.providerID`,
      )
  }
}

function nodeReadyCondition(node: Node): NewCondition {
  const { NodeReady } = MachineConditions
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')
  if (!ready) return NodeReady.unknown('NodeReadyUnknown', '* Node.Ready: Condition not yet reported')
  const message = ready.message && ready.status !== 'True' ? `* Node.Ready: ${ready.message}` : ''
  const since = ready.lastTransitionTime ? { lastTransitionTime: ready.lastTransitionTime } : {}
  switch (ready.status as Condition['status']) {
    case 'True':
      return { ...NodeReady.true('NodeReady', message), ...since }
    case 'False':
      return { ...NodeReady.false('NodeNotReady', message), ...since }
    case 'Unknown':
      return { ...NodeReady.unknown('NodeReadyUnknown', message), ...since }
  }
}

/** Node conditions with their healthy status. */
const healthy = { Ready: 'True', MemoryPressure: 'False', DiskPressure: 'False', PIDPressure: 'False' } as const

function nodeHealthyCondition(node: Node): NewCondition {
  const { NodeHealthy } = MachineConditions
  const lines: { type: string; message: string; isReported: boolean }[] = []
  let isWrong = false
  for (const [type, healthyStatus] of Object.entries(healthy)) {
    const condition = node.status?.conditions?.find((candidate) => candidate.type === type)
    if (condition?.status === healthyStatus) continue
    isWrong ||= condition !== undefined && condition.status !== 'Unknown'
    const message = condition ? condition.message || `Condition is ${condition.status}` : 'Condition not yet reported'
    lines.push({ type, message, isReported: condition !== undefined })
  }
  if (lines.length === 0) return NodeHealthy.true('NodeHealthy')
  // As upstream, the comparison ignores conditions that the Node does not report.
  const reported = lines.filter(({ isReported }) => isReported)
  const isSame = reported.length > 1 && reported.every(({ message }) => message === reported[0]!.message)
  const text = isSame
    ? `* Node.AllConditions: ${reported[0]!.message}`
    : lines.map(({ type, message }) => `* Node.${type}: ${message}`).join('\n')
  return isWrong ? NodeHealthy.false('NodeNotHealthy', text) : NodeHealthy.unknown('NodeHealthyUnknown', text)
}
