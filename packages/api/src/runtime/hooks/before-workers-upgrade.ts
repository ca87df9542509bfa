import { s } from '@capstan/kube'
import { defineHook, retryResponse } from '../hook.ts'
import { upgradeSteps } from './upgrade-steps.ts'
import { wireCluster } from './wire-cluster.ts'

/** Called until it no longer blocks, before each version that the workers take. */
export const BeforeWorkersUpgrade = defineHook({
  name: 'BeforeWorkersUpgrade',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called immediately before the version of the control plane goes to the workers, for every step of an upgrade that they take. While it blocks, the workers keep their version.',
  request: {
    cluster: wireCluster,
    fromKubernetesVersion: s.string().doc('Lowest version of the workers now.'),
    toKubernetesVersion: s.string().doc('Version that they are about to get.'),
    ...upgradeSteps,
  },
  response: retryResponse,
})
