import type { Cluster, ClusterConditions, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import type { Outcome, ReconcileContext } from '@capstan/controller'
import type { ClusterCache } from '../cluster-cache/cluster-cache.ts'
import type { Observed } from '../external/observed.ts'

/** What one pass over a Cluster can see, and what it has decided. */
export interface ClusterScope {
  /** A private draft: phases write on it, the pass commits it once. */
  readonly cluster: Cluster
  infrastructure: Observed
  controlPlane: Observed
  /** Absent when they could not be listed. */
  descendants: Descendants | undefined
  /** How far deletion has come. */
  deletion: DeletionStage
}

/** Everything with the Cluster's name on it. */
export interface Descendants {
  readonly machineDeployments: readonly MachineDeployment[]
  readonly machineSets: readonly MachineSet[]
  readonly controlPlaneMachines: readonly Machine[]
  readonly workerMachines: readonly Machine[]
}

export interface DeletionStage {
  readonly reason: (typeof ClusterConditions.Deleting.reasons)[number]
  readonly message: string
}

export interface ClusterSettings {
  /** How long a workload cluster may be silent before RemoteConnectionProbe is False, in milliseconds. */
  readonly remoteConnectionGracePeriod: number
}

/** The I/O that phases may do. */
export interface ClusterIO extends ReconcileContext {
  readonly clusters: ClusterCache
  readonly settings: ClusterSettings
}

export type ClusterPhase = (scope: ClusterScope, io: ClusterIO) => Promise<Outcome>
