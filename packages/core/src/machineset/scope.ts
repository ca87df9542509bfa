import type { Cluster, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import type { Outcome, ReconcileContext } from '@capstan/controller'
import type { Observed } from '../external/observed.ts'

/** What one pass over a MachineSet can see, and what it has decided. */
export interface MachineSetScope {
  /** A private draft: phases write on it, the pass commits it once. */
  readonly machineSet: MachineSet
  readonly cluster: Cluster
  /** The MachineDeployment that controls the set. */
  readonly machineDeployment: MachineDeployment | undefined
  bootstrapTemplate: Observed
  infrastructureTemplate: Observed
  /** Machines of the set, those being deleted included; `undefined` until they were listed. */
  machines: readonly Machine[] | undefined
  /** Why no Machine may be made at the moment. */
  preflightProblems: readonly string[]
  /** What came of the attempt to make a Machine, if one was made in vain. */
  creationFailure?: CreationFailure
}

/** Which step failed, as conditions of v1beta1 call it. */
export interface CreationFailure {
  readonly reason: 'BootstrapTemplateCloningFailed' | 'InfrastructureTemplateCloningFailed' | 'MachineCreationFailed'
  readonly message: string
}

export interface MachineSetSettings {
  /** Preflight checks before Machines are made. */
  readonly preflightChecks: readonly PreflightCheck[]
}

export const PreflightChecks = [
  'ControlPlaneIsStable',
  'KubernetesVersionSkew',
  'KubeadmVersionSkew',
  'ControlPlaneVersionSkew',
] as const
export type PreflightCheck = (typeof PreflightChecks)[number]

/** The I/O that phases may do. */
export interface MachineSetIO extends ReconcileContext {
  readonly settings: MachineSetSettings
}

export type MachineSetPhase = (scope: MachineSetScope, io: MachineSetIO) => Promise<Outcome>

/** Who writes Machines, their infrastructure and bootstrap config, as managed fields name it. */
export const MachineSetManager = 'capi-machineset'
