import { proceed } from '@capstan/controller'
import { removeRetryRequest, retryRequestOf } from '../retry-requests.ts'
import type { ClusterPhase } from './scope.ts'

/**
 * Removes a user's request to retry hooks from a Cluster without topology: the controllers of its Machines and MachineDeployments have
 * counted it when they saw it. The topology controller does so for all other Clusters, after its own calls.
 */
export const retryHooks: ClusterPhase = async ({ cluster }, { client, signal }) => {
  if (!cluster.spec.topology && retryRequestOf(cluster) !== undefined) await removeRetryRequest(client, cluster, signal)
  return proceed()
}
