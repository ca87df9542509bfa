import type { Cluster, Machine } from '@capstan/api'
import type { UnknownObject } from '@capstan/kube'
import type { LocalControlPlane } from '../kinds/local-control-plane.ts'
import type { Certificates } from './certificates.ts'
import type { Step } from './plan.ts'

/** State of one reconcile of a control plane. `unread` parts were not reached. */
export interface ControlPlaneScope {
  /** A private draft: passes write on it, the commit sends what changed. */
  readonly controlPlane: LocalControlPlane
  readonly cluster: Cluster
  /** Control plane Machines, oldest first; each with why it must be replaced. */
  machines: readonly { readonly machine: Machine; readonly outdated: readonly string[] }[]
  /** Names of Machines that must be gone before the control plane may go. */
  workers: readonly string[]
  certificates: Certificates
  template:
    | { readonly state: 'unread' }
    | { readonly state: 'missing' }
    | { readonly state: 'found'; readonly object: UnknownObject }
  /** Why the control plane could not be initialized. */
  initializationIssue: string | undefined
  step: Step | undefined
  /** The pass ended with an error: what is unread could not be read. */
  failed: boolean
  deletion: 'none' | 'waiting for workers' | 'waiting for machines' | 'completed' | 'failed'
}
