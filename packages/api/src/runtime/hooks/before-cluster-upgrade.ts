import { s } from '@capstan/kube'
import { defineHook, retryResponse } from '../hook.ts'
import { upgradeSteps } from './upgrade-steps.ts'
import { wireCluster } from './wire-cluster.ts'

/** Called until it no longer blocks, before a new version reaches the control plane. */
export const BeforeClusterUpgrade = defineHook({
  name: 'BeforeClusterUpgrade',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called after spec.topology.version changed and immediately before the new version goes to the control plane. While it blocks, changes of the topology wait too.',
  request: {
    cluster: wireCluster,
    fromKubernetesVersion: s.string().doc('Version of the control plane now.'),
    toKubernetesVersion: s.string().doc('Version that the topology asks for.'),
    ...upgradeSteps,
  },
  response: retryResponse,
})
