import { s } from '@capstan/kube'
import { defineHook, retryResponse } from '../hook.ts'
import { upgradeSteps } from './upgrade-steps.ts'
import { wireCluster } from './wire-cluster.ts'

/** Hook that is called after each upgrade step of the control plane, before the workers follow, and again until it no longer blocks. */
export const AfterControlPlaneUpgrade = defineHook({
  name: 'AfterControlPlaneUpgrade',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called after the control plane was upgraded to a version, for every such step of an upgrade, before the workers follow. While it blocks, the workers keep their version, and most other changes of the workers wait.',
  request: {
    cluster: wireCluster,
    kubernetesVersion: s.string().doc('Version that the control plane reached.'),
    ...upgradeSteps,
  },
  response: retryResponse,
})
