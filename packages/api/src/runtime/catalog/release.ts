/** The catalog of hooks of a release as data, to compare releases. */
import type { JSONSchema } from '@capstan/kube'
import type { Deprecation, Hook } from '../hook.ts'

/** One version of a hook in a release. */
export interface ReleasedHook {
  readonly group: string
  readonly version: string
  readonly name: string
  readonly blocking: boolean
  readonly deprecated?: Deprecation
  readonly request: JSONSchema
  readonly response: JSONSchema
}

/** All hooks of a release. */
export interface ReleasedCatalog {
  /** Name of the release, such as v1.14.0. */
  readonly release: string
  /** Day of the release, such as 2026-08-11. */
  readonly date: string
  readonly hooks: readonly ReleasedHook[]
}

export const releasedCatalog = (release: string, date: string, hooks: readonly Hook[]): ReleasedCatalog => ({
  release,
  date,
  hooks: hooks.map(({ group, version, name, blocking, deprecated, request, response }) => ({
    group,
    version,
    name,
    blocking,
    ...(deprecated ? { deprecated } : {}),
    request: request.json,
    response: response.json,
  })),
})
