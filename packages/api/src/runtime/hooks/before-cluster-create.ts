import { defineHook, retryResponse } from '../hook.ts'
import { wireCluster } from './wire-cluster.ts'

/** Hook that is called before the objects of a Cluster's topology are created, and again until it no longer blocks. */
export const BeforeClusterCreate = defineHook({
  name: 'BeforeClusterCreate',
  tag: 'Lifecycle Hooks',
  blocking: true,
  doc: 'Called after the Cluster was created and immediately before the objects of its topology are created. While it blocks, none of these objects is created.',
  request: { cluster: wireCluster },
  response: retryResponse,
})
