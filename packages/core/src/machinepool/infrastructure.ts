import { InfraMachinePoolContract, isPoolProvisioned, poolReplicasOf, providerIDsOf } from '@capstan/api'
import { proceed, wait } from '@capstan/controller'
import { equal, isDeleting, keyOf, TerminalError } from '@capstan/kube'
import { failureOf, setFailure } from '../external/failure.ts'
import type { Found } from '../external/observed.ts'
import { readContract } from '../external/read-contract.ts'
import { reportNodeCounts } from './legacy-status.ts'
import { observeAndAdopt } from './reference.ts'
import type { MachinePoolPhase, MachinePoolScope } from './scope.ts'

/**
 * Adopts the infrastructure machine pool, copies its terminal failure and whether it is provisioned, and gets the connection to the workload
 * cluster.
 */
export const infrastructure: MachinePoolPhase = async (scope, io) => {
  const { machinePool, cluster } = scope
  const ref = machinePool.spec.template.spec.infrastructureRef
  scope.infrastructure = await observeAndAdopt(scope, io, ref)
  if (scope.infrastructure.state !== 'found') {
    if (!machinePool.status?.initialization?.infrastructureProvisioned) return wait(`${ref.kind} ${ref.name} to exist`)
    const failureMessage = `MachinePool infrastructure resource ${ref.kind} ${machinePool.metadata.namespace}/${ref.name} has been deleted after being ready`
    setFailure(machinePool, { failureReason: 'InvalidConfiguration', failureMessage })
    throw new TerminalError(failureMessage)
  }
  const { external } = scope.infrastructure
  setFailure(machinePool, failureOf(external, InfraMachinePoolContract))
  if (isDeleting(external.object)) return proceed()

  const infrastructureProvisioned = readContract(scope.infrastructure, isPoolProvisioned)
  const status = (machinePool.status ??= {})
  status.initialization = { ...status.initialization, infrastructureProvisioned }
  // As upstream, provider IDs and replicas are not read while the workload cluster is disconnected.
  scope.workload = io.clusters.connection(keyOf(cluster))
  return scope.workload ? proceed() : wait('connection to the workload cluster is down')
}

/**
 * Copies replicas and provider IDs of a provisioned infrastructure machine pool. Copies none of the fields when one is invalid, the
 * infrastructure machine pool is being deleted, or, as upstream, when the workload cluster is disconnected, the infrastructure machines could
 * not be listed, or a Machine could not be written. While the pool has replicas, an empty list of provider IDs is not copied.
 */
export const providerIDs: MachinePoolPhase = async (scope) => {
  const { machinePool } = scope
  const pool = activeInfrastructure(scope)
  if (!pool || !scope.workload || scope.createMachinesFailed) return proceed()
  const { kind, metadata } = pool.external.object
  if (!machinePool.status?.initialization?.infrastructureProvisioned) return wait(`${kind} ${metadata.name} to be provisioned`)
  const [ids, replicas] = readContract(pool, (object, contract) => [
    providerIDsOf(object, contract),
    poolReplicasOf(object, contract),
  ])
  if (replicas !== undefined) machinePool.status.replicas = replicas
  const total = machinePool.status.replicas ?? 0
  if (ids.length === 0 && total !== 0)
    return wait(`${kind} ${metadata.name} to report spec.providerIDList of its ${total} replicas`)
  if (equal(ids, machinePool.spec.providerIDList ?? [])) return proceed()
  if (ids.length > 0) machinePool.spec.providerIDList = [...ids]
  else delete machinePool.spec.providerIDList
  // No replica counts as ready until the phase `nodes` finds the Nodes of the new list.
  reportNodeCounts(machinePool, { readyReplicas: 0, availableReplicas: 0, unavailableReplicas: total })
  return proceed()
}

/** Returns the infrastructure machine pool; `undefined` when it was not found or is being deleted. */
export const activeInfrastructure = ({ infrastructure }: MachinePoolScope): Found | undefined =>
  infrastructure.state === 'found' && !isDeleting(infrastructure.external.object) ? infrastructure : undefined
