import type { Cluster, Machine, MachinePool } from '@capstan/api'
import type { Outcome, ReconcileContext } from '@capstan/controller'
import type { ClusterCache } from '../cluster-cache/cluster-cache.ts'
import type { WorkloadCluster } from '../cluster-cache/accessor.ts'
import type { Observed } from '../external/observed.ts'
import type { NodeReport } from './node-report.ts'

/** State of one reconcile of a MachinePool: its inputs and decisions. */
export interface MachinePoolScope {
  /** A private draft, changed by phases and committed once at the end. */
  readonly machinePool: MachinePool
  readonly cluster: Cluster
  bootstrap: Observed
  infrastructure: Observed
  /** Connection to the workload cluster; absent when it is disconnected or was not needed. */
  workload: WorkloadCluster | undefined
  /** Machines of the pool, including those being deleted; absent until they were listed. */
  machines: readonly Machine[] | undefined
  /** Whether the Machines could not be listed or written. */
  areMachinesFailed?: boolean
  /** Whether the pool has no provider IDs, replicas and Nodes yet, although `spec.replicas` is not 0. */
  hasNoMachines?: boolean
  /** Counts of the pool's Nodes; absent when they were not read. */
  nodes: NodeReport | undefined
}

/** I/O available to phases. */
export interface MachinePoolIO extends ReconcileContext {
  readonly clusters: ClusterCache
}

export type MachinePoolPhase = (scope: MachinePoolScope, io: MachinePoolIO) => Promise<Outcome>

/** Field manager of the Machines of a pool. */
export const MachinePoolManager = 'machinepool-controller'
