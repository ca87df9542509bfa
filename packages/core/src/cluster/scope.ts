import type { Cluster, ClusterConditions, Machine, MachineDeployment, MachinePool, MachineSet } from '@capstan/api'
import type { Outcome, ReconcileContext } from '@capstan/controller'
import type { ClusterCache } from '../cluster-cache/cluster-cache.ts'
import type { FeatureGates } from '../feature-gates.ts'
import type { Observed } from '../external/observed.ts'

/** State of one reconcile of a Cluster: its inputs and decisions. */
export interface ClusterScope {
  /** A private draft, changed by phases and committed once at the end. */
  readonly cluster: Cluster
  infrastructure: Observed
  controlPlane: Observed
  /** `undefined` until the phase `descendants` has listed them. */
  descendants: Descendants | undefined
  /** Progress of the deletion. */
  deletion: DeletionStage
}

/**
 * The MachineDeployments, MachinePools, MachineSets and Machines with the Cluster's name label. While the feature gate MachinePool is
 * disabled, `machinePools` is empty.
 */
export interface Descendants {
  readonly machineDeployments: readonly MachineDeployment[]
  readonly machinePools: readonly MachinePool[]
  readonly machineSets: readonly MachineSet[]
  readonly controlPlaneMachines: readonly Machine[]
  readonly workerMachines: readonly Machine[]
}

/** Reason and message of the condition Deleting. */
export interface DeletionStage {
  readonly reason: (typeof ClusterConditions.Deleting.reasons)[number]
  readonly message: string
}

export interface ClusterSettings {
  /**
   * RemoteConnectionProbe becomes False when probes of the workload cluster fail and the last success was longer ago than this number of
   * milliseconds. Not used before the first success.
   */
  readonly remoteConnectionGracePeriod: number
  readonly gates: FeatureGates
}

/** I/O available to phases. */
export interface ClusterIO extends ReconcileContext {
  /** Connections to the workload clusters. */
  readonly clusters: ClusterCache
  readonly settings: ClusterSettings
}

export type ClusterPhase = (scope: ClusterScope, io: ClusterIO) => Promise<Outcome>
