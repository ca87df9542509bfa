/** Feature gates that can be disabled. Upstream: feature, v1.14. */

/** Names of the feature gates that can be disabled. */
export const SwitchableGates = ['ClusterTopology', 'MachinePool', 'RuntimeSDK'] as const

/** States of feature gates by name. An absent gate is enabled. */
export type FeatureGates = { readonly [gate in (typeof SwitchableGates)[number]]?: boolean }

/** Whether the deletion of a Cluster with a topology waits for BeforeClusterDelete. */
export const awaitsDeleteHook = ({ RuntimeSDK = true, ClusterTopology = true }: FeatureGates): boolean =>
  RuntimeSDK && ClusterTopology
