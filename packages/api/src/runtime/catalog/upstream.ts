/**
 * The hooks of upstream's releases v1.10 to v1.14, for checks before an upgrade to another release.
 * Upstream: api/runtime/hooks of each release; exp/runtime/hooks in v1.10.
 */
import { HooksGroup } from '../hook.ts'
import type { ReleasedCatalog } from './release.ts'

const firstHooks = [
  'Discovery',
  'BeforeClusterCreate',
  'AfterControlPlaneInitialized',
  'BeforeClusterUpgrade',
  'AfterControlPlaneUpgrade',
  'AfterClusterUpgrade',
  'BeforeClusterDelete',
  'GeneratePatches',
  'ValidateTopology',
  'DiscoverVariables',
]
const hooksSinceV112 = [
  ...firstHooks,
  'BeforeControlPlaneUpgrade',
  'BeforeWorkersUpgrade',
  'AfterWorkersUpgrade',
  'GenerateUpgradePlan',
  'CanUpdateMachine',
  'CanUpdateMachineSet',
  'UpdateMachine',
]

/** Lists the hooks of a release for `preflight`. `blocking` and the schemas are placeholders, because `preflight` does not read them. */
const released = (release: string, names: readonly string[]): Pick<ReleasedCatalog, 'release' | 'hooks'> => ({
  release,
  hooks: names.map((name) => ({ group: HooksGroup, version: 'v1alpha1', name, blocking: false, request: {}, response: {} })),
})

/** Catalogs by minor release. All hooks have only version v1alpha1. */
export const upstreamCatalogs: { readonly [release: string]: Pick<ReleasedCatalog, 'release' | 'hooks'> } = {
  'v1.10': released('v1.10', firstHooks),
  'v1.11': released('v1.11', firstHooks),
  'v1.12': released('v1.12', hooksSinceV112),
  'v1.13': released('v1.13', hooksSinceV112),
  'v1.14': released('v1.14', hooksSinceV112),
}
