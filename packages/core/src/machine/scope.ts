import type { Cluster, Machine, MachineConditions, MachineDeployment, MachineSet } from '@capstan/api'
import type { Outcome, ReconcileContext } from '@capstan/controller'
import type { Node } from '@capstan/kube'
import type { ClusterCache } from '../cluster-cache/cluster-cache.ts'
import type { Observed } from '../external/observed.ts'
import type { UpdateCalls } from './update-calls.ts'

/** What one pass over a Machine can see, and what it has decided. */
export interface MachineScope {
  /** A private draft: phases write on it, the pass commits it once. */
  readonly machine: Machine
  readonly cluster: Cluster
  /** The MachineSet that controls the Machine, and the MachineDeployment that controls that. */
  readonly machineSet: MachineSet | undefined
  readonly machineDeployment: MachineDeployment | undefined
  bootstrap: Observed
  infrastructure: Observed
  node: ObservedNode
  /** What to say of the update in place that is under way; absent when there is nothing in particular. */
  update?: UpdateStage
  /** How far deletion has come. */
  deletion: DeletionStage
  /** What became of the steps of the deletion that the pass came to. */
  readonly steps: { [Name in DeletionStep]?: StepEnd }
}

export type ObservedNode =
  /** Nobody looked, or looking failed. */
  | { readonly state: 'unread' }
  /** There is no providerID to look by. */
  | { readonly state: 'unnamed' }
  /** The workload cluster is not connected. */
  | { readonly state: 'disconnected' }
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

/** In their order. */
export type DeletionStep = 'preDrainHooks' | 'drain' | 'volumes' | 'preTerminateHooks' | 'infrastructure' | 'bootstrap' | 'node'

export type StepEnd =
  | { readonly state: 'done' }
  /** There was nothing to do, or it was not allowed. */
  | { readonly state: 'skipped' }
  | { readonly state: 'waiting'; readonly outcome: Outcome }
  | { readonly state: 'failed'; readonly message: string; readonly outcome: Outcome }

export interface MachineSettings {
  /** How long a workload cluster may be silent before conditions about its Nodes become Unknown, in milliseconds. */
  readonly remoteConditionsGracePeriod: number
  /** Further labels and annotations that go from Machine to Node, beside those of Cluster API's domains. */
  readonly syncLabels: readonly RegExp[]
  readonly syncAnnotations: readonly RegExp[]
}

/** The I/O that phases may do. */
export interface MachineIO extends ReconcileContext {
  readonly clusters: ClusterCache
  /** Calls of extensions that update Machines in place. */
  readonly updates: UpdateCalls
  readonly settings: MachineSettings
}

export type MachinePhase = (scope: MachineScope, io: MachineIO) => Promise<Outcome>
