import { s } from '@capstan/kube'
import { defineHook, retryResponse } from '../hook.ts'
import { wireCluster } from './wire-cluster.ts'

/**
 * Hook that is called after an upgrade, when the control plane and all workers have the version of the topology, and again until it no longer
 * blocks.
 */
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
