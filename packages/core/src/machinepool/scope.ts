import type { Cluster, Machine, MachinePool } from '@capstan/api'
import type { Outcome, ReconcileContext } from '@capstan/controller'
import type { ClusterCache } from '../cluster-cache/cluster-cache.ts'
import type { WorkloadCluster } from '../cluster-cache/accessor.ts'
import type { Observed } from '../external/observed.ts'
import type { NodeReport } from './node-report.ts'

/** What one reconcile of a MachinePool can see, and what it has decided. */
export interface MachinePoolScope {
  /** A private draft: phases write on it, the reconcile commits it once. */
  readonly machinePool: MachinePool
  readonly cluster: Cluster
  bootstrap: Observed
  infrastructure: Observed
  /** Why the infrastructure cannot be read as the contract has it; absent when it can. */
  invalid?: string
  /** Connection to the workload cluster; absent when there is none or it was not needed. */
  workload: WorkloadCluster | undefined
  /** Machines of the pool, those being deleted included; absent until they were listed. */
  machines: readonly Machine[] | undefined
  /** What was found of the pool's Nodes; absent when they were not looked up. */
  nodes: NodeReport | undefined
}

/** The I/O that phases may do. */
export interface MachinePoolIO extends ReconcileContext {
  readonly clusters: ClusterCache
}

export type MachinePoolPhase = (scope: MachinePoolScope, io: MachinePoolIO) => Promise<Outcome>

/** Field manager of the Machines of a pool. */
export const MachinePoolManager = 'machinepool-controller'
