import { s } from '@capstan/kube'
import { defineHook, retryResponse } from '../hook.ts'
import { upgradeSteps } from './upgrade-steps.ts'
import { wireCluster } from './wire-cluster.ts'

/** The hook that core calls, until it no longer blocks, between the upgrade of the control plane and that of the workers. */
export const AfterControlPlaneUpgrade = defineHook({
  name: 'AfterControlPlaneUpgrade',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called after the control plane was upgraded and immediately before the workers are. While it blocks, the workers keep their version, and other changes of the workers wait.',
  request: {
    cluster: wireCluster,
    kubernetesVersion: s.string().doc('Version that the control plane reached.'),
    ...upgradeSteps,
  },
  response: retryResponse,
})
