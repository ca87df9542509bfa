/**
 * Catalog of hooks in all their versions. Core uses the newest version. For a handler of an older version, the request is
 * converted to the older version and the response to the newest version. Upstream: api/runtime/catalog, v1.14.
 */
import { compareApiVersions } from '@capstan/kube'
import type { Hook } from '../hook.ts'

/** A hook without its version. */
export type GroupHook = Pick<Hook, 'group' | 'name'>

export interface Catalog {
  /** All versions of all hooks, in the order of declaration. */
  readonly hooks: readonly Hook[]
  find(group: string, version: string, name: string): Hook | undefined
  /** Returns all versions of a hook: stable before beta before alpha, then newest first. Empty for an unknown hook. */
  versions(hook: GroupHook): readonly Hook[]
  /** Converts a request of version `from` to version `to`, which is older or the same. @throws TypeError without a conversion */
  requestDown(from: Hook, to: Hook, request: object): object
  /** Converts a response of version `from` to version `to`, which is newer or the same. @throws TypeError without a conversion */
  responseUp(from: Hook, to: Hook, response: object): object
}

/**
 * Creates a catalog of hooks.
 *
 * @throws TypeError for an invalid declaration: a version that is declared twice, or a hook without group, version or name
 */
export function createCatalog(hooks: readonly Hook[]): Catalog {
  const byId = new Map<string, Hook>()
  const byName = new Map<string, Hook[]>()
  for (const hook of hooks) {
    const id = hookText(hook)
    if (!hook.group || !hook.version || !hook.name) throw new TypeError(`A hook needs group, version and name: ${id}`)
    if (byId.has(id)) throw new TypeError(`The hook ${id} is declared twice`)
    byId.set(id, hook)
    byName.set(groupHookText(hook), [...(byName.get(groupHookText(hook)) ?? []), hook])
  }
  for (const versions of byName.values()) versions.sort((a, b) => compareApiVersions(a.version, b.version))

  return {
    hooks,
    find: (group, version, name) => byId.get(hookText({ group, version, name })),
    versions: (hook) => byName.get(groupHookText(hook)) ?? [],
    // Both functions use the steps from the old version to the new version; for requests in reverse order.
    requestDown: (from, to, request) =>
      stepsBetween(to, from).reduceRight<object>((newer, step) => step.requestDown(newer as never), request),
    responseUp: (from, to, response) =>
      stepsBetween(from, to).reduce<object>((older, step) => step.responseUp(older as never), response),
  }
}

/** Formats a hook as `group/version, Hook=Name`. Upstream: GroupVersionHook.String. */
export const hookText = ({ group, version, name }: Pick<Hook, 'group' | 'version' | 'name'>): string =>
  `${group}/${version}, Hook=${name}`

/** Formats a hook as `Name.group` for messages. Upstream: GroupHook.String. */
export const groupHookText = ({ group, name }: GroupHook): string => `${name}.${group}`

/** Returns the conversions from an old version to a newer version. */
function stepsBetween(old: Hook, newer: Hook): NonNullable<Hook['newer']>[] {
  const steps: NonNullable<Hook['newer']>[] = []
  for (let current = old; current.version !== newer.version; ) {
    const step = current.newer
    if (!step || steps.length > 100) throw new TypeError(`${hookText(old)} cannot be converted to ${hookText(newer)}`)
    steps.push(step)
    current = step.hook
  }
  return steps
}
