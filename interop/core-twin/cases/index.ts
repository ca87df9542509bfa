/** All cases, by name: a name is also the case's namespace. */
import type { Cases } from '../twin.ts'
import { clusterAdmissionCases } from './admission/clusters.ts'
import { machineAdmissionCases } from './admission/machines.ts'
import { otherAdmissionCases } from './admission/others.ts'
import { clusterCases } from './cluster.ts'
import { drainCases } from './drain.ts'
import { healthCheckCases } from './health-check.ts'
import { machineCases } from './machine.ts'
import { machineDeploymentCases } from './machine-deployment.ts'
import { machinePoolCases } from './machine-pool.ts'
import { machineSetCases } from './machine-set.ts'
import { resourceSetCases } from './resource-set.ts'
import { topologyCases } from './topology.ts'

export const cases: Cases = {
  ...clusterAdmissionCases,
  ...machineAdmissionCases,
  ...otherAdmissionCases,
  ...clusterCases,
  ...machineCases,
  ...machineSetCases,
  ...machineDeploymentCases,
  ...machinePoolCases,
  ...healthCheckCases,
  ...drainCases,
  ...resourceSetCases,
  ...topologyCases,
}
