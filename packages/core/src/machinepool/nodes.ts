import {
  ClusterNameAnnotation,
  ClusterNamespaceAnnotation,
  MachinePool,
  NodeUninitializedTaint,
  OwnerKindAnnotation,
  OwnerNameAnnotation,
} from '@capstan/api'
import { proceed, requeue, wait } from '@capstan/controller'
import { type Client, equal, Node, orAbsent } from '@capstan/kube'
import type { WorkloadCluster } from '../cluster-cache/accessor.ts'
import { reportNodeCounts } from './legacy-status.ts'
import { type NodeReport, nodeReferences, nodeReport } from './node-report.ts'
import type { MachinePoolIO, MachinePoolPhase } from './scope.ts'

/**
 * Deletes Nodes of removed provider IDs. Finds and counts the Nodes of the remaining IDs, annotates these Nodes, and removes their taint
 * `uninitialized`.
 */
export const nodes: MachinePoolPhase = async (scope, io) => {
  const { machinePool, workload } = scope
  const { spec, metadata } = machinePool
  const ids = spec.providerIDList ?? []
  if (!workload) return proceed()
  // As upstream, if `hasNoMachines` is true, ReplicasReady becomes True, and Nodes are neither counted nor annotated, even if there are
  // provider IDs.
  scope.hasNoMachines = (machinePool.status?.replicas ?? 0) === 0 && (machinePool.status?.nodeRefs ?? []).length === 0
  if (lacksProviderIDs(machinePool)) return wait('provider IDs of the machines')
  if (scope.hasNoMachines) return proceed()
  await deleteRetiredNodes(machinePool, workload, io.signal)

  const now = io.clock.now()
  const { minReadySeconds } = spec.template.spec
  const report = nodeReport(ids, (id) => workload.nodesByProviderID(id)[0], { now, minReadySeconds })
  // As upstream, earlier nodeRefs stay in the status while there are provider IDs, but none has a Node.
  if (report.nodes.length === 0 && ids.length > 0) return wait('Nodes with the provider IDs of spec.providerIDList')
  scope.nodes = report
  const status = (machinePool.status ??= {})
  const references = nodeReferences(report)
  if (!equal(references, status.nodeRefs ?? [])) {
    if (references.length > 0) status.nodeRefs = references
    else delete status.nodeRefs
    io.events.event(machinePool, 'Normal', 'SuccessfulSetNodeRefs', referencesText(report))
  }
  reportNodeCounts(machinePool, {
    readyReplicas: report.ready,
    availableReplicas: report.available,
    unavailableReplicas: (status.replicas ?? 0) - report.available,
  })
  const owner = { namespace: metadata.namespace!, name: metadata.name, clusterName: spec.clusterName }
  for (const node of report.nodes) await markNode(workload.client, node, owner, io)
  return report.nextAvailable === undefined
    ? proceed()
    : requeue(report.nextAvailable - now, 'Nodes to have been ready for minReadySeconds')
}

/** Whether the pool has no provider IDs although `spec.replicas` is not 0. */
export const lacksProviderIDs = ({ spec }: MachinePool): boolean =>
  (spec.providerIDList ?? []).length === 0 && spec.replicas !== 0

/**
 * Deletes the Nodes of `status.nodeRefs` whose provider ID is not in `spec.providerIDList`, because their machines were deleted. Skips
 * Nodes that do not exist or have no provider ID.
 */
export async function deleteRetiredNodes(
  { spec, status }: MachinePool,
  workload: WorkloadCluster,
  signal: AbortSignal,
): Promise<void> {
  const currentIDs = new Set(spec.providerIDList)
  for (const { name } of status?.nodeRefs ?? []) {
    const node = name === undefined ? undefined : workload.node(name)
    const providerID = node?.spec?.providerID
    if (!node || !providerID || currentIDs.has(providerID)) continue
    // As upstream, also deletes a Node that has the name of the reference but another UID, such as a Node that was created again.
    const preconditions = { uid: node.metadata.uid }
    await orAbsent(workload.client.delete(Node, { name: node.metadata.name }, { preconditions, signal }))
  }
}

/** Annotates a Node with its cluster and pool, and removes the taint `uninitialized`. Upstream: patchNodes. */
async function markNode(
  client: Client,
  { metadata, spec }: Node,
  owner: { readonly namespace: string; readonly name: string; readonly clusterName: string },
  { signal }: MachinePoolIO,
): Promise<void> {
  const annotations = {
    [ClusterNameAnnotation]: owner.clusterName,
    [ClusterNamespaceAnnotation]: owner.namespace,
    [OwnerKindAnnotation]: MachinePool.kind,
    [OwnerNameAnnotation]: owner.name,
  }
  const isAnnotated = Object.entries(annotations).every(([key, value]) => metadata.annotations?.[key] === value)
  const taints = spec?.taints ?? []
  const remainingTaints = taints.filter(
    ({ key, effect }) => key !== NodeUninitializedTaint.key || effect !== NodeUninitializedTaint.effect,
  )
  const isTainted = remainingTaints.length < taints.length
  if (isAnnotated && !isTainted) return
  // Optimistic lock: several writers change taints.
  const body = {
    metadata: { annotations, ...(isTainted ? { resourceVersion: metadata.resourceVersion } : {}) },
    ...(isTainted ? { spec: { taints: remainingTaints.length > 0 ? remainingTaints : null } } : {}),
  }
  await orAbsent(client.patch(Node, { name: metadata.name }, { type: 'merge', body }, { signal }))
}

/** Maximum number of Nodes that the event names. */
const MaxNodes = 10

/** Formats references to the Nodes as Go prints a list of object references; replaces those after `MaxNodes` by their number. */
function referencesText({ nodes }: NodeReport): string {
  const texts = nodes
    .slice(0, MaxNodes)
    .map(
      ({ metadata }) =>
        `{Kind:Node Namespace: Name:${metadata.name} UID:${metadata.uid} APIVersion:v1 ResourceVersion: FieldPath:}`,
    )
  const surplus = nodes.length - MaxNodes
  return `[${texts.join(' ')}${surplus > 0 ? ` ... (${surplus} more)` : ''}]`
}
