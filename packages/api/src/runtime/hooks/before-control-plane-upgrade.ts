import { s } from '@capstan/kube'
import { defineHook, retryResponse } from '../hook.ts'
import { upgradeSteps } from './upgrade-steps.ts'
import { wireCluster } from './wire-cluster.ts'

/** Hook that is called before each upgrade step of the control plane, and again until it no longer blocks. */
export const BeforeControlPlaneUpgrade = defineHook({
  name: 'BeforeControlPlaneUpgrade',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called immediately before the control plane is upgraded to the next version, for every step of an upgrade. While it blocks, the control plane keeps its version.',
  request: {
    cluster: wireCluster,
    fromKubernetesVersion: s.string().doc('Current version of the control plane.'),
    toKubernetesVersion: s.string().doc('Version of the next step.'),
    ...upgradeSteps,
  },
  response: retryResponse,
})
