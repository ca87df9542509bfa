import { s } from '@capstan/kube'
import { defineHook, retryResponse } from '../hook.ts'
import { wireCluster } from './wire-cluster.ts'

/** The hook that core calls, until it no longer blocks, when control plane and workers run the version of the topology. */
export const AfterClusterUpgrade = defineHook({
  name: 'AfterClusterUpgrade',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called after control plane and workers were upgraded. While it blocks, the next upgrade cannot begin.',
  request: {
    cluster: wireCluster,
    kubernetesVersion: s.string().doc('Version that the cluster reached.'),
  },
  response: retryResponse,
})
