/** Compact notation of default roles: space-separated lists, because there are many. */
import type { PolicyRule } from '@capstan/kube'

export interface BootstrapRole {
  readonly name: string
  /** Absent for a ClusterRole. */
  readonly namespace?: string
  readonly rules: readonly PolicyRule[]
  readonly labels?: { readonly [label: string]: string }
  /** Label of the roles whose rules it aggregates. */
  readonly aggregates?: string
}

export const all = '*'
export const read = 'get list watch'
export const write = 'create delete deletecollection patch update'
export const readWrite = 'create delete deletecollection get list patch update watch'

/** Rule for `verbs` on `resources` of `groups`; the core group is written `core`. */
export const on = (verbs: string, groups: string, resources: string, names?: string): PolicyRule => ({
  verbs: verbs.split(' '),
  apiGroups: groups.split(' ').map((group) => (group === 'core' ? '' : group)),
  resources: resources.split(' '),
  ...(names === undefined ? {} : { resourceNames: names.split(' ') }),
})

export const paths = (verbs: string, nonResourceURLs: string): PolicyRule => ({
  verbs: verbs.split(' '),
  nonResourceURLs: nonResourceURLs.split(' '),
})
