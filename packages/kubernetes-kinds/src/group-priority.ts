/**
 * Order of API groups and their versions. Clients that look up a kind by name use the first match. Upstream:
 * pkg/controlplane/apiserver/aggregator.go and cmd/kube-apiserver/app/aggregator.go, v1.36.
 */

/** Priorities of an API group and of one of its versions. Higher priorities come first. */
export interface Priority {
  readonly group: number
  readonly version: number
}

const builtin: { readonly [groupVersion: string]: Priority } = {
  'apiregistration.k8s.io/v1': { group: 20_000, version: 18 },
  '/v1': { group: 18_000, version: 1 },
  'apps/v1': { group: 17_800, version: 15 },
  'events.k8s.io/v1': { group: 17_750, version: 15 },
  'authentication.k8s.io/v1': { group: 17_700, version: 15 },
  'authorization.k8s.io/v1': { group: 17_600, version: 15 },
  'autoscaling/v1': { group: 17_500, version: 15 },
  'autoscaling/v2': { group: 17_500, version: 30 },
  'batch/v1': { group: 17_400, version: 15 },
  'certificates.k8s.io/v1': { group: 17_300, version: 15 },
  'networking.k8s.io/v1': { group: 17_200, version: 15 },
  'policy/v1': { group: 17_100, version: 15 },
  'rbac.authorization.k8s.io/v1': { group: 17_000, version: 15 },
  'storage.k8s.io/v1': { group: 16_800, version: 15 },
  'apiextensions.k8s.io/v1': { group: 16_700, version: 15 },
  'admissionregistration.k8s.io/v1': { group: 16_700, version: 15 },
  'scheduling.k8s.io/v1': { group: 16_600, version: 15 },
  'coordination.k8s.io/v1': { group: 16_500, version: 15 },
  'node.k8s.io/v1': { group: 16_300, version: 15 },
  'discovery.k8s.io/v1': { group: 16_200, version: 15 },
  'resource.k8s.io/v1': { group: 16_200, version: 21 },
  'flowcontrol.apiserver.k8s.io/v1': { group: 16_100, version: 21 },
}
const custom: Priority = { group: 1000, version: 100 }

/** Returns the priorities of a version. `groupVersion` is `GROUP/VERSION`, and `/v1` for the core group. */
export const priorityOf = (groupVersion: string): Priority => builtin[groupVersion] ?? custom

/** Whether the version has built-in kinds. `groupVersion` as for `priorityOf`. */
export const isBuiltin = (groupVersion: string): boolean => groupVersion in builtin
