import type { Client, Clock, Logger } from '@capstan/kube'
import type { Registry } from '../registry/registry.ts'
import type { Store } from '../store/store.ts'

/** Dependencies of the controllers that run in a server. */
export interface ControllerOptions {
  readonly store: Store
  readonly registry: Registry
  readonly clock: Clock
  readonly log: Logger
  readonly client: Client
}
