import { s } from '@capstan/kube'
import { defineHook, retryResponse } from '../hook.ts'
import { upgradeSteps } from './upgrade-steps.ts'
import { wireCluster } from './wire-cluster.ts'

/** Hook that is called after each upgrade step of the workers, and again until it no longer blocks. */
export const AfterWorkersUpgrade = defineHook({
  name: 'AfterWorkersUpgrade',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called after all workers were upgraded to a version, for every such step of an upgrade. While it blocks, the control plane keeps its version.',
  request: {
    cluster: wireCluster,
    kubernetesVersion: s.string().doc('Version that the workers reached.'),
    ...upgradeSteps,
  },
  response: retryResponse,
})
