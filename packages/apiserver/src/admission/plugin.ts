/** Admission plugins that are code in the server, unlike webhooks and policies. The plugins of a server run in the order of their list. */
import type { Clock, Random, StatusError, UnknownObject } from '@capstan/kube'
import { type Authorizer, forbiddenTo } from '../auth/authorizer.ts'
import type { User } from '../auth/user.ts'
import type { ResourceInfo } from '../registry/resource-info.ts'
import type { Registry } from '../registry/registry.ts'
import type { PendingWrites } from '../store/pending.ts'
import type { Store } from '../store/store.ts'

export interface Plugin {
  readonly name: string
  /** Reports whether the plugin applies to a resource. */
  appliesTo(info: ResourceInfo): boolean
  /** May change the draft. @throws StatusError to deny the write */
  mutate?(write: PluginWrite): void | Promise<void>
  /** @throws StatusError to deny the write */
  validate?(write: PluginWrite): void | Promise<void>
}

/** A write as admission plugins receive it. */
export interface PluginWrite {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
  readonly info: ResourceInfo
  readonly subresource: string | undefined
  readonly namespace: string | undefined
  /** Empty when the name is still to be generated. */
  readonly name: string
  /** The object to be stored; for a deletion, the stored object. */
  readonly object: UnknownObject
  /** The stored object; undefined for a create. */
  readonly old: UnknownObject | undefined
  readonly caller: User
  readonly store: Store
  /** Writes that have passed a check, such as of a quota, but are not stored yet. */
  readonly pending: PendingWrites
  readonly registry: Registry
  readonly authorizer: Authorizer
  readonly clock: Clock
  readonly random: Random
  /** Adds a warning to the response, whether or not the write succeeds. */
  readonly warn: (text: string) => void
}

/** Error for a denied write. Before a name is generated, the error contains the generateName. Upstream: admission.NewForbidden. */
export const forbidden = ({ info, name, object }: PluginWrite, reason: string): StatusError =>
  forbiddenTo(info, name || object.metadata.name || object.metadata.generateName || 'Unknown', reason)

/** Returns a function from a resource to the plugins that apply to it. The function caches its results. */
export function pluginsFor(plugins: readonly Plugin[]): (info: ResourceInfo) => readonly Plugin[] {
  const byResource = new WeakMap<ResourceInfo, readonly Plugin[]>()
  return (info) => {
    let applicable = byResource.get(info)
    if (!applicable) byResource.set(info, (applicable = plugins.filter((plugin) => plugin.appliesTo(info))))
    return applicable
  }
}
