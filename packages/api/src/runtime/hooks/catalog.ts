import type { Hook } from '../hook.ts'
import { AfterClusterUpgrade } from './after-cluster-upgrade.ts'
import { AfterControlPlaneInitialized } from './after-control-plane-initialized.ts'
import { AfterControlPlaneUpgrade } from './after-control-plane-upgrade.ts'
import { BeforeClusterCreate } from './before-cluster-create.ts'
import { BeforeClusterDelete } from './before-cluster-delete.ts'
import { BeforeClusterUpgrade } from './before-cluster-upgrade.ts'
import { Discovery } from './discovery.ts'

/** Every hook that core knows, in the order of a Cluster's life. */
export const hookCatalog: readonly Hook[] = [
  Discovery,
  BeforeClusterCreate,
  AfterControlPlaneInitialized,
  BeforeClusterUpgrade,
  AfterControlPlaneUpgrade,
  AfterClusterUpgrade,
  BeforeClusterDelete,
]
