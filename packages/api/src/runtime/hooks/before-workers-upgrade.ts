import { s } from '@capstan/kube'
import { defineHook, retryResponse } from '../hook.ts'
import { upgradeSteps } from './upgrade-steps.ts'
import { wireCluster } from './wire-cluster.ts'

/** Hook that is called before each upgrade step of the workers, and again until it no longer blocks. */
export const BeforeWorkersUpgrade = defineHook({
  name: 'BeforeWorkersUpgrade',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called immediately before the workers are upgraded to the version of the control plane, for every step of an upgrade that they take. While it blocks, the workers keep their version.',
  request: {
    cluster: wireCluster,
    fromKubernetesVersion: s.string().doc('Current lowest version of the workers.'),
    toKubernetesVersion: s.string().doc('Version to which the workers are upgraded next.'),
    ...upgradeSteps,
  },
  response: retryResponse,
})
