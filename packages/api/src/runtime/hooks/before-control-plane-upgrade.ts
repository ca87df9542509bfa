import { s } from '@capstan/kube'
import { defineHook, retryResponse } from '../hook.ts'
import { upgradeSteps } from './upgrade-steps.ts'
import { wireCluster } from './wire-cluster.ts'

/** Called until it no longer blocks, before each version that the control plane passes. */
export const BeforeControlPlaneUpgrade = defineHook({
  name: 'BeforeControlPlaneUpgrade',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called immediately before the next version goes to the control plane, once for every step of an upgrade. While it blocks, the control plane keeps its version.',
  request: {
    cluster: wireCluster,
    fromKubernetesVersion: s.string().doc('Version of the control plane now.'),
    toKubernetesVersion: s.string().doc('Version of the next step.'),
    ...upgradeSteps,
  },
  response: retryResponse,
})
