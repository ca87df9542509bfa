import type { Client, Kind, KubeObject } from '@capstan/kube'

export interface CommitOptions {
  /** Condition types that this controller owns: its word wins over what another writer may have put there meanwhile. */
  readonly conditions: readonly string[]
  readonly signal?: AbortSignal
}

/**
 * Writes what one pass decided. `before` is the object as the pass first read it, `after` the private draft it worked on. At most
 * three patches are sent, each only when something changed: conditions (with optimistic lock, three-way per type), metadata and
 * spec, the rest of status. Returns the object as last answered, or `before` when nothing changed.
 */
export type Commit = <T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  before: T,
  after: T,
  options: CommitOptions,
) => Promise<T>
