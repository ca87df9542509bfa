import type { Cluster, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import type { Outcome, ReconcileContext } from '@capstan/controller'
import type { Observed } from '../external/observed.ts'
import type { InPlaceDecisions } from './can-update-machine-set.ts'

/** State of one reconcile of a MachineDeployment: its inputs and decisions. */
export interface MachineDeploymentScope {
  /** A private draft, changed by phases and committed once at the end. */
  readonly machineDeployment: MachineDeployment
  readonly cluster: Cluster
  bootstrapTemplate: Observed
  infrastructureTemplate: Observed
  /** Sets of the deployment, with the changes of this reconcile; `undefined` until they were listed. */
  machineSets: readonly MachineSet[] | undefined
  /** Machines that the selector matches, as cached when the reconcile listed them; `undefined` until they were listed. */
  machines: readonly Machine[] | undefined
  /**
   * True until this reconcile has written all MachineSets, for a step of the rollout or, while `spec.paused` is true, to scale them. As
   * upstream, the v1beta1 status and `observedGeneration` stay unchanged if these writes fail or must wait.
   */
  rolloutIncomplete?: boolean
}

/** I/O available to phases. */
export interface MachineDeploymentIO extends ReconcileContext {
  /** Calls the hook CanUpdateMachineSet and caches the decisions. Absent without a client for hooks: no update in place is then started. */
  readonly inPlace?: InPlaceDecisions
}

export type MachineDeploymentPhase = (scope: MachineDeploymentScope, io: MachineDeploymentIO) => Promise<Outcome>

/** Field manager with which the MachineDeployment controller applies MachineSets. */
export const MachineDeploymentManager = 'capi-machinedeployment'
