/** Lifecycle hooks of an upgrade, in the order of their first calls. */
export const upgradeHooks: readonly string[] = [
  'BeforeClusterUpgrade',
  'BeforeControlPlaneUpgrade',
  'AfterControlPlaneUpgrade',
  'BeforeWorkersUpgrade',
  'AfterWorkersUpgrade',
  'AfterClusterUpgrade',
]
