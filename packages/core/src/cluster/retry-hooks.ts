import { proceed } from '@capstan/controller'
import { removeRetryRequest, retryRequestOf } from '../retry-requests.ts'
import type { ClusterPhase } from './scope.ts'

/**
 * Removes the annotation by which a user requests to retry hooks, from a Cluster without topology: the controllers of Machines and
 * MachineDeployments count requests when their watches deliver them, and do not need the annotation afterwards. From a Cluster with a
 * topology, the topology controller removes the annotation after its own calls.
 */
export const retryHooks: ClusterPhase = async ({ cluster }, { client, signal }) => {
  if (!cluster.spec.topology && retryRequestOf(cluster) !== undefined) await removeRetryRequest(client, cluster, signal)
  return proceed()
}
