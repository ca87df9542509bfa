import type { Cluster, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import type { Outcome, ReconcileContext } from '@capstan/controller'
import type { Observed } from '../external/observed.ts'

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

export type MachineDeploymentPhase = (scope: MachineDeploymentScope, io: ReconcileContext) => Promise<Outcome>

/** Who writes MachineSets, as managed fields name it. */
export const MachineDeploymentManager = 'capi-machinedeployment'
