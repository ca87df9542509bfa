import { defineHook, retryResponse } from '../hook.ts'
import { wireCluster } from './wire-cluster.ts'

/** The hook that core calls, until it no longer blocks, before objects of the Cluster's topology are created. */
export const BeforeClusterCreate = defineHook({
  name: 'BeforeClusterCreate',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called after the Cluster was created and immediately before the objects of its topology are created. While it blocks, no object is created.',
  request: { cluster: wireCluster },
  response: retryResponse,
})
