import type { Cluster, Machine, MachineConditions, MachineDeployment, MachineSet } from '@capstan/api'
import type { Outcome, ReconcileContext } from '@capstan/controller'
import type { Node } from '@capstan/kube'
import type { ClusterCache } from '../cluster-cache/cluster-cache.ts'
import type { Observed } from '../external/observed.ts'
import type { UpdateCalls } from './update-calls.ts'

/** State of one reconcile of a Machine: its inputs and decisions. */
export interface MachineScope {
  /** A private draft, changed by phases and committed once at the end. */
  readonly machine: Machine
  readonly cluster: Cluster
  /** The MachineSet that controls the Machine. */
  readonly machineSet: MachineSet | undefined
  /** The MachineDeployment that the label of the MachineSet names. */
  readonly machineDeployment: MachineDeployment | undefined
  bootstrap: Observed
  infrastructure: Observed
  node: ObservedNode
  /**
   * Progress of an in-place update; set only if the hook UpdateMachine blocked or failed in this reconcile, or the infrastructure machine
   * is gone.
   */
  update?: UpdateStage
  /** Progress of the deletion. */
  deletion: DeletionStage
  /** Results of the deletion steps that the reconcile reached. */
  readonly steps: { [Name in DeletionStep]?: StepResult }
}

export type ObservedNode =
  /** Not read, or reading failed. */
  | { readonly state: 'unread' }
  /** The Machine has no providerID. */
  | { readonly state: 'noProviderID' }
  /** The workload cluster is not connected. */
  | { readonly state: 'disconnected' }
  /** No Node has the providerID. */
  | { readonly state: 'missing' }
  | { readonly state: 'found'; readonly node: Node }

export interface UpdateStage {
  readonly reason: (typeof MachineConditions.Updating.reasons)[number]
  readonly message: string
}

export interface DeletionStage {
  readonly reason: (typeof MachineConditions.Deleting.reasons)[number]
  readonly message: string
}

/** Deletion steps in their order. */
export type DeletionStep = 'preDrainHooks' | 'drain' | 'volumes' | 'preTerminateHooks' | 'infrastructure' | 'bootstrap' | 'node'

export type StepResult =
  | { readonly state: 'done' }
  /** The step was unnecessary or excluded by an annotation, or the drain or the wait for volumes has timed out. */
  | { readonly state: 'skipped' }
  | { readonly state: 'waiting'; readonly outcome: Outcome }
  | { readonly state: 'failed'; readonly message: string; readonly outcome: Outcome }

export interface MachineSettings {
  /** Milliseconds without a response of the workload cluster before Node conditions become Unknown. */
  readonly remoteConditionsGracePeriod: number
  /** Patterns of label keys to sync from Machine to Node, in addition to the keys that upstream always syncs. */
  readonly syncLabels: readonly RegExp[]
  /** As `syncLabels`, for annotation keys. */
  readonly syncAnnotations: readonly RegExp[]
}

/** I/O available to phases. */
export interface MachineIO extends ReconcileContext {
  readonly clusters: ClusterCache
  /** Calls to extensions that update Machines in place. */
  readonly updates: UpdateCalls
  /** By uid of the Machine, the time by `Clock.elapsed` at which the deletion of its Node first failed. */
  readonly nodeDeletionFailures: Map<string, number>
  readonly settings: MachineSettings
}

/** A phase of a reconcile. All phases run, in order, even when an earlier phase has failed. */
export type MachinePhase = (scope: MachineScope, io: MachineIO) => Promise<Outcome>
