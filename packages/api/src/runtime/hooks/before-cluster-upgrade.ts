import { s } from '@capstan/kube'
import { defineHook, retryResponse } from '../hook.ts'
import { upgradeSteps } from './upgrade-steps.ts'
import { wireCluster } from './wire-cluster.ts'

/** Hook that is called at the start of an upgrade, before its first step, and again until it no longer blocks. */
export const BeforeClusterUpgrade = defineHook({
  name: 'BeforeClusterUpgrade',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called after spec.topology.version changed and immediately before the control plane is upgraded. While it blocks, most other changes of the control plane and the workers wait, too.',
  request: {
    cluster: wireCluster,
    fromKubernetesVersion: s.string().doc('Current version of the control plane.'),
    toKubernetesVersion: s.string().doc('Requested version: spec.topology.version.'),
    ...upgradeSteps,
  },
  response: retryResponse,
})
