/** Priority levels of requests. Upstream: FlowSchemas and PriorityLevelConfigurations. */
import type { NamedResource } from '@capstan/kube'

export type PriorityLevel =
  | 'leader-election'
  | 'node-high'
  | 'system'
  | 'workload-high'
  | 'workload-low'
  | 'global-default'
  | 'catch-all'

/** Selects requests by user, resource and verb, and gives them a priority level. An absent condition matches every request. */
export interface FlowSchema {
  readonly level: PriorityLevel
  /** Group of the user. */
  readonly group?: string
  /** Pattern that the name of the user must match. */
  readonly user?: RegExp
  /** Resources, including their subresources. Non-resource requests do not match. */
  readonly resources?: readonly NamedResource[]
  readonly verbs?: readonly string[]
}

/** Priorities of requests. The table names built-in kinds, so the package of these kinds provides it. */
export interface FlowTable {
  /** The first schema that matches a request decides; other requests have the level `global-default`. */
  readonly schemas: readonly FlowSchema[]
  /** Resources whose requests are served even when memory is nearly used up. */
  readonly urgent: readonly NamedResource[]
}
