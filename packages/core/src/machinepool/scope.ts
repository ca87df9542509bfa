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
  /**
   * Connection to the workload cluster. Absent when it is disconnected, while the MachinePool is being deleted, and when the infrastructure
   * machine pool could not be read, breaks the contract, does not exist or is being deleted.
   */
  workload: WorkloadCluster | undefined
  /** Machines of the pool, including those being deleted; absent until they were listed. */
  machines: readonly Machine[] | undefined
  /** Whether the phase `createMachines` could not list the infrastructure machines of the pool, or could not write one of their Machines. */
  createMachinesFailed?: boolean
  /** Whether `status.replicas` is 0 and `status.nodeRefs` is empty. Absent without a connection to the workload cluster. */
  hasNoMachines?: boolean
  /** Nodes of the pool and their counts; absent when they were not read, and while none of the provider IDs has a Node. */
  nodes: NodeReport | undefined
}

/** I/O available to phases. */
export interface MachinePoolIO extends ReconcileContext {
  readonly clusters: ClusterCache
}

export type MachinePoolPhase = (scope: MachinePoolScope, io: MachinePoolIO) => Promise<Outcome>

/** Field manager of the Machines of a pool. */
export const MachinePoolManager = 'machinepool-controller'
