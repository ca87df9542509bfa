import type { Cluster, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import type { Outcome, ReconcileContext } from '@capstan/controller'
import type { FeatureGates } from '../feature-gates.ts'
import type { Observed } from '../external/observed.ts'

/** State of one reconcile of a MachineSet: its inputs and decisions. */
export interface MachineSetScope {
  /** A private draft, changed by phases and committed once at the end. */
  readonly machineSet: MachineSet
  readonly cluster: Cluster
  /** The MachineDeployment that the label of the set names. */
  readonly machineDeployment: MachineDeployment | undefined
  bootstrapTemplate: Observed
  infrastructureTemplate: Observed
  /** Machines of the set, including those being deleted; `undefined` until they were listed. */
  machines: readonly Machine[] | undefined
  /** How many of `machines` this reconcile has created. */
  created?: number
  /** Failed preflight checks, or the error with which they ended. No Machine is created while there are any. */
  preflightProblems: readonly string[]
  /** The failure to create a Machine, if any. */
  creationFailure?: CreationFailure
}

/** A failure to create a Machine. The v1beta1 condition MachinesCreated has this reason and message. */
export interface CreationFailure {
  readonly reason: 'BootstrapTemplateCloningFailed' | 'InfrastructureTemplateCloningFailed' | 'MachineCreationFailed'
  readonly message: string
}

export interface MachineSetSettings {
  /** Preflight checks to run before Machines are created or remediated. */
  readonly preflightChecks: readonly PreflightCheck[]
  readonly gates: FeatureGates
}

/** Names of all preflight checks, as users write them in the annotation `machineset.cluster.x-k8s.io/skip-preflight-checks`. */
export const PreflightChecks = [
  'ControlPlaneIsStable',
  'KubernetesVersionSkew',
  'KubeadmVersionSkew',
  'ControlPlaneVersionSkew',
] as const
export type PreflightCheck = (typeof PreflightChecks)[number]

/** I/O available to phases. */
export interface MachineSetIO extends ReconcileContext {
  readonly settings: MachineSetSettings
}

export type MachineSetPhase = (scope: MachineSetScope, io: MachineSetIO) => Promise<Outcome>

/** Field manager of Machines, and of those fields of their infrastructure and bootstrap configs that `MetadataManager` does not set. */
export const MachineSetManager = 'capi-machineset'
/** Field manager of the labels and annotations that infrastructure and bootstrap configs get from the template of the MachineSet. */
export const MetadataManager = 'capi-machineset-metadata'
