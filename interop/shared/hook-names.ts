/** Hooks of an upgrade, in the order of their calls. */
export const upgradeHooks: readonly string[] = [
  'BeforeClusterUpgrade',
  'BeforeControlPlaneUpgrade',
  'AfterControlPlaneUpgrade',
  'BeforeWorkersUpgrade',
  'AfterWorkersUpgrade',
  'AfterClusterUpgrade',
]
