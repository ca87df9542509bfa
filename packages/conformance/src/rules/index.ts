import type { Rule } from '../rule.ts'
import { allResources } from './all-resources.ts'
import { clusterctlRules } from './clusterctl.ts'
import { bootstrapConfigRules, controlPlaneRules } from './control-plane.ts'
import { ipamRules } from './ipam.ts'
import { infraClusterRules, infraMachinePoolRules, infraMachineRules } from './infrastructure.ts'
import { perContract } from './per-contract.ts'

/**
 * All rules that apply to providers: those that all contracts share, then those of each contract in the order of upstream's book, then those
 * of IPAM and clusterctl.
 */
export const rules: readonly Rule[] = [
  ...allResources,
  ...perContract.InfraCluster,
  ...infraClusterRules,
  ...perContract.InfraMachine,
  ...infraMachineRules,
  ...perContract.InfraMachinePool,
  ...infraMachinePoolRules,
  ...perContract.BootstrapConfig,
  ...bootstrapConfigRules,
  ...perContract.ControlPlane,
  ...controlPlaneRules,
  ...ipamRules,
  ...clusterctlRules,
]
