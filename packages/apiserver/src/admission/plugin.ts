/**
 * Code of the server's own that has a say in writes of any kind: upstream's admission plugins, those that are not webhooks. Each is
 * a file in this folder, and `plugins.ts` lists them in the order in which they are asked.
 */
import type { Clock, Random, StatusError, UnknownObject } from '@capstan/kube'
import { type Authorizer, forbiddenTo } from '../auth/authorizer.ts'
import type { User } from '../engine.ts'
import type { Definition } from '../registry/definition.ts'
import type { Registry } from '../registry/registry.ts'
import type { PendingWrites } from '../store/pending.ts'
import type { Store } from '../store/store.ts'
import type { AdmissionPlugin } from './plugin-names.ts'

export interface Plugin {
  readonly name: AdmissionPlugin
  /** Whether it has anything to say about the resource at all. */
  concerns(definition: Definition): boolean
  /** May change the draft. @throws StatusError when the write cannot be */
  mutate?(write: PluginWrite): void | Promise<void>
  /** @throws StatusError when the write cannot be */
  validate?(write: PluginWrite): void | Promise<void>
}

/** What plugins are told of a write. */
export interface PluginWrite {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
  readonly definition: Definition
  readonly subresource: string | undefined
  readonly namespace: string | undefined
  /** Empty where it is still to be generated. */
  readonly name: string
  /** What is to be stored; for a deletion, what is. */
  readonly object: UnknownObject
  readonly old: UnknownObject | undefined
  readonly caller: User
  readonly store: Store
  readonly pending: PendingWrites
  readonly registry: Registry
  readonly authorizer: Authorizer
  readonly clock: Clock
  readonly random: Random
  /** Tells whoever writes, whatever comes of the write. */
  readonly warn: (text: string) => void
}

/** Upstream: admission.NewForbidden. An object that is still to get its name is called by what it will begin with. */
export const forbidden = ({ definition, name, object }: PluginWrite, why: string): StatusError =>
  forbiddenTo(definition, name || object.metadata.name || object.metadata.generateName || 'Unknown', why)
