/** All cases, by name: a name is also the case's namespace. */
import type { Cases } from '../twin.ts'
import { clusterCases } from './cluster.ts'
import { machineCases } from './machine.ts'
import { machineDeploymentCases } from './machine-deployment.ts'
import { machineSetCases } from './machine-set.ts'

export const cases: Cases = { ...clusterCases, ...machineCases, ...machineSetCases, ...machineDeploymentCases }
