/**
 * All cases of the suite `core-twin` except the random ones, by name. A case runs the same script with upstream's core and with Capstan's.
 * Its name is also the name of its namespace. `timedCases` require that both cores reconcile within two seconds, and run before all other
 * cases. `restartCases` stop both managers, and run after all other cases.
 */
import type { Cases } from '../twin.ts'
import { clusterAdmissionCases } from './admission/clusters.ts'
import { machineAdmissionCases } from './admission/machines.ts'
import { otherAdmissionCases } from './admission/others.ts'
import { topologyStateAdmissionCases } from './admission/topology-state.ts'
import { bootstrapKindCases } from './bootstrap-kinds.ts'
import { clusterCases } from './cluster.ts'
import { deniedWriteCases } from './denied-writes.ts'
import { drainCases } from './drain.ts'
import { externalRemediationCases } from './external-remediation.ts'
import { healthCheckCases } from './health-check.ts'
import { hookCases } from './hooks.ts'
import { inPlaceCases } from './in-place.ts'
import { machineCases } from './machine.ts'
import { machineDeploymentCases } from './machine-deployment.ts'
import { machinePoolCases } from './machine-pool.ts'
import { machineSetCases } from './machine-set.ts'
import { remediationCases } from './remediation.ts'
import { resourceSetCases } from './resource-set.ts'
import { ownerCases } from './owners.ts'
import { topologyCurrentStateCases } from './topology-current-state.ts'
import { topologyFailureCases } from './topology-failures.ts'
import { topologyPoolCases } from './topology-pools.ts'
import { timedTopologyCases, topologyCases } from './topology.ts'
import { unreachableCases } from './unreachable.ts'

export { restartCases } from './restart.ts'

export const timedCases: Cases = { ...timedTopologyCases }

export const cases: Cases = {
  ...clusterAdmissionCases,
  ...machineAdmissionCases,
  ...otherAdmissionCases,
  ...topologyStateAdmissionCases,
  ...clusterCases,
  ...machineCases,
  ...machineSetCases,
  ...machineDeploymentCases,
  ...machinePoolCases,
  ...healthCheckCases,
  ...externalRemediationCases,
  ...remediationCases,
  ...drainCases,
  ...resourceSetCases,
  ...topologyCases,
  ...topologyPoolCases,
  ...topologyFailureCases,
  ...topologyCurrentStateCases,
  ...bootstrapKindCases,
  ...deniedWriteCases,
  ...ownerCases,
  ...unreachableCases,
  ...hookCases,
  ...inPlaceCases,
}
