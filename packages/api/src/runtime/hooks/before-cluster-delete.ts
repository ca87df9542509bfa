import { defineHook, retryResponse } from '../hook.ts'
import { wireCluster } from './wire-cluster.ts'

/**
 * Hook that is called before core deletes the objects of a Cluster with a topology that is being deleted, and again until it no longer blocks.
 */
export const BeforeClusterDelete = defineHook({
  name: 'BeforeClusterDelete',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called when the Cluster is being deleted, immediately before its objects are deleted. While it blocks, core does not begin to delete these objects.',
  request: { cluster: wireCluster },
  response: retryResponse,
})
