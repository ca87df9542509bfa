import type { Cluster, Machine } from '@capstan/api'
import type { UnknownObject } from '@capstan/kube'
import type { LocalControlPlane } from '../kinds/local-control-plane.ts'
import type { Certificates } from './certificates.ts'
import type { Step } from './plan.ts'

/**
 * State of one reconcile of a control plane. The state `unread` of `certificates` and `template` means that the reconcile has not read
 * them.
 */
export interface ControlPlaneScope {
  /** A private draft, changed by phases and committed once at the end. */
  readonly controlPlane: LocalControlPlane
  readonly cluster: Cluster
  /**
   * Control plane Machines, oldest first, each with the reasons why it is not up to date (empty until `syncMachine` computes
   * them).
   */
  machines: readonly { readonly machine: Machine; readonly outdated: readonly string[] }[]
  /** Names of the worker Machines. The control plane Machines, or the hosted API server, are removed after them. */
  workers: readonly string[]
  certificates: Certificates
  template:
    | { readonly state: 'unread' }
    | { readonly state: 'missing' }
    | { readonly state: 'found'; readonly object: UnknownObject }
  /** Error message when the control plane could not be initialized. */
  initializationIssue: string | undefined
  /** The planned step; `undefined` until the reconcile has planned. */
  step: Step | undefined
  /** Whether a phase of the reconcile failed. The condition CertificatesAvailable is then Unknown if the certificates are `unread`. */
  failed: boolean
  deletion: 'none' | 'waiting for workers' | 'waiting for machines' | 'completed' | 'failed'
}
