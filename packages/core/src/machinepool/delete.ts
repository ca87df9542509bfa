/**
 * Deletes the bootstrap config and infrastructure of a MachinePool, then its retired Nodes: Nodes in status.nodeRefs whose provider ID is
 * no longer in spec.providerIDList. After the Node deletion timeout, the Nodes stay. Upstream: reconcileDelete in machinepool_controller.go,
 * v1.14.
 */
import { type ContractVersionedObjectReference, MachinePoolFinalizer } from '@capstan/api'
import { proceed, requeue, wait } from '@capstan/controller'
import { keyOf, removeFinalizer, seconds, timeLeft } from '@capstan/kube'
import { deleteExternal, isGone } from '../external/delete.ts'
import { observeExternal } from '../external/observe.ts'
import { type Observed, toObserved } from '../external/observed.ts'
import { deleteRetiredNodes } from './nodes.ts'
import { machinePoolsOfReference } from './reference.ts'
import type { MachinePoolPhase } from './scope.ts'

export const remove: MachinePoolPhase = async ({ machinePool, cluster }, io) => {
  const { bootstrap, infrastructureRef } = machinePool.spec.template.spec
  const references: { readonly ref: ContractVersionedObjectReference; readonly observed: Observed }[] = []
  // As upstream, neither object is deleted while one of them cannot be read.
  for (const ref of [...(bootstrap.configRef ? [bootstrap.configRef] : []), infrastructureRef]) {
    const observed = toObserved(await observeExternal(io, ref, machinePool.metadata.namespace!, machinePoolsOfReference))
    references.push({ ref, observed })
  }
  const undeleted: string[] = []
  for (const { ref, observed } of references) {
    // As upstream, waits until the object no longer exists, not only for the start of its deletion.
    if (!isGone(await deleteExternal(observed, io))) undeleted.push(`${ref.kind} ${ref.name}`)
  }
  if (undeleted.length > 0) return wait(`${undeleted.join(', ')} to be deleted`)

  const remaining = remainingNodeTime(machinePool, io.clock.now())
  if (remaining > 0 && (machinePool.status?.nodeRefs ?? []).length > 0) {
    const workload = io.clusters.connection(keyOf(cluster))
    if (!workload) {
      const reason = 'connection to the workload cluster is down: its Nodes cannot be deleted'
      return remaining === Infinity ? wait(reason) : requeue(remaining, reason)
    }
    await deleteRetiredNodes(machinePool, workload, io.signal)
  }
  removeFinalizer(machinePool, MachinePoolFinalizer)
  return proceed()
}

/** Returns the milliseconds until the Node deletion timeout; Infinity when the timeout is absent or 0. */
function remainingNodeTime({ metadata, spec }: Parameters<MachinePoolPhase>[0]['machinePool'], now: number): number {
  const limit = spec.template.spec.deletion?.nodeDeletionTimeoutSeconds
  if (!limit) return Infinity
  return timeLeft({ since: Date.parse(metadata.deletionTimestamp!), length: seconds(limit), now })
}
