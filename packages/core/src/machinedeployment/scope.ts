import type { Cluster, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import type { Outcome, ReconcileContext } from '@capstan/controller'
import type { Observed } from '../external/observed.ts'
import type { InPlaceDecisions } from './can-update-machine-set.ts'

/** What one pass over a MachineDeployment can see, and what it has decided. */
export interface MachineDeploymentScope {
  /** A private draft: phases write on it, the pass commits it once. */
  readonly machineDeployment: MachineDeployment
  readonly cluster: Cluster
  bootstrapTemplate: Observed
  infrastructureTemplate: Observed
  /** Sets of the deployment, as they are after this pass; `undefined` until they were listed. */
  machineSets: readonly MachineSet[] | undefined
  /** Machines of those sets, as the pass found them. */
  machines: readonly Machine[] | undefined
}

/** The I/O that phases may do. */
export interface MachineDeploymentIO extends ReconcileContext {
  /** Who says what can be updated in place; absent where there are no Runtime Extensions. */
  readonly inPlace?: InPlaceDecisions
}

export type MachineDeploymentPhase = (scope: MachineDeploymentScope, io: MachineDeploymentIO) => Promise<Outcome>

/** Who writes MachineSets, as managed fields name it. */
export const MachineDeploymentManager = 'capi-machinedeployment'
