/** Checks whether a release, such as the next or the running one, calls registered handlers. */
import { parseApiVersion } from '@capstan/kube'
import type { ExtensionConfig } from '../v1beta2/extension-config.ts'
import { hookText } from './catalog.ts'
import type { ReleasedCatalog } from './release.ts'

/** A registered handler, and the version of the hook that it handles. */
export interface RegisteredHandler {
  /** Name in the form `<handler>.<extensionconfig>`. */
  readonly name: string
  readonly group: string
  readonly version: string
  readonly hook: string
}

export interface PreflightFinding {
  readonly handler: string
  /** `gone`: the release does not call this version of the hook. `deprecated`: a later release may no longer call it. */
  readonly kind: 'gone' | 'deprecated'
  readonly message: string
}

/** Returns the handlers in the status of an ExtensionConfig. */
export const registeredHandlers = ({ status }: Pick<ExtensionConfig, 'status'>): RegisteredHandler[] =>
  (status?.handlers ?? []).map(({ name, requestHook: { apiVersion, hook } }) => ({ name, ...parseApiVersion(apiVersion), hook }))

/** Returns a finding for each handler whose version of a hook the release does not have, or has deprecated. */
export const preflight = (
  handlers: readonly RegisteredHandler[],
  target: Pick<ReleasedCatalog, 'release' | 'hooks'>,
): PreflightFinding[] => handlers.flatMap((handler) => findingOf(handler, target) ?? [])

function findingOf(
  { name, group, version, hook }: RegisteredHandler,
  { release, hooks }: Pick<ReleasedCatalog, 'release' | 'hooks'>,
): PreflightFinding | undefined {
  const text = hookText({ group, version, name: hook })
  const versions = hooks.filter((candidate) => candidate.group === group && candidate.name === hook)
  const called = versions.find((candidate) => candidate.version === version)
  if (!called) {
    const available =
      versions.length === 0 ? 'it does not have this hook' : `it has ${versions.map((candidate) => candidate.version).join(', ')}`
    return { handler: name, kind: 'gone', message: `${text} is not in ${release}: ${available}` }
  }
  if (!called.deprecated) return undefined
  const since = called.deprecated.release
  // The hooks may come from the OpenAPI document of a release. That document marks deprecated hooks, but does not contain the release
  // of the deprecation: `since` then equals `release`.
  return { handler: name, kind: 'deprecated', message: `${text} is deprecated ${since === release ? 'in' : 'since'} ${since}` }
}
