import { s } from '@capstan/kube'
import { defineHook, retryResponse } from '../hook.ts'
import { upgradeSteps } from './upgrade-steps.ts'
import { wireCluster } from './wire-cluster.ts'

/** The hook that core calls, until it no longer blocks, before the control plane gets a new version. */
export const BeforeClusterUpgrade = defineHook({
  name: 'BeforeClusterUpgrade',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called after spec.topology.version changed and immediately before the control plane is upgraded. While it blocks, other changes of the topology wait too.',
  request: {
    cluster: wireCluster,
    fromKubernetesVersion: s.string().doc('Current version of the control plane.'),
    toKubernetesVersion: s.string().doc('Requested version: spec.topology.version.'),
    ...upgradeSteps,
  },
  response: retryResponse,
})
