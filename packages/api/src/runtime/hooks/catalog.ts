import type { Hook } from '../hook.ts'
import { AfterClusterUpgrade } from './after-cluster-upgrade.ts'
import { AfterControlPlaneInitialized } from './after-control-plane-initialized.ts'
import { AfterControlPlaneUpgrade } from './after-control-plane-upgrade.ts'
import { AfterWorkersUpgrade } from './after-workers-upgrade.ts'
import { BeforeClusterCreate } from './before-cluster-create.ts'
import { BeforeClusterDelete } from './before-cluster-delete.ts'
import { BeforeClusterUpgrade } from './before-cluster-upgrade.ts'
import { BeforeControlPlaneUpgrade } from './before-control-plane-upgrade.ts'
import { BeforeWorkersUpgrade } from './before-workers-upgrade.ts'
import { CanUpdateMachine } from './can-update-machine.ts'
import { CanUpdateMachineSet } from './can-update-machine-set.ts'
import { DiscoverVariables } from './discover-variables.ts'
import { Discovery } from './discovery.ts'
import { GeneratePatches } from './generate-patches.ts'
import { GenerateUpgradePlan } from './generate-upgrade-plan.ts'
import { UpdateMachine } from './update-machine.ts'
import { ValidateTopology } from './validate-topology.ts'

/**
 * All hooks of Cluster API: Discovery; the lifecycle hooks in the order of their calls; GenerateUpgradePlan; the topology mutation hooks; the
 * hooks of in-place updates.
 */
export const hookCatalog: readonly Hook[] = [
  Discovery,
  BeforeClusterCreate,
  AfterControlPlaneInitialized,
  BeforeClusterUpgrade,
  BeforeControlPlaneUpgrade,
  AfterControlPlaneUpgrade,
  BeforeWorkersUpgrade,
  AfterWorkersUpgrade,
  AfterClusterUpgrade,
  BeforeClusterDelete,
  GenerateUpgradePlan,
  GeneratePatches,
  ValidateTopology,
  DiscoverVariables,
  CanUpdateMachine,
  CanUpdateMachineSet,
  UpdateMachine,
]
