import { s } from '@capstan/kube'
import { defineHook, retryResponse } from '../hook.ts'

/** Called until it no longer blocks, before anything of the Cluster's topology is created. */
export const BeforeClusterCreate = defineHook({
  name: 'BeforeClusterCreate',
  blocking: true,
  doc: 'Called after the Cluster was created and immediately before the objects of its topology are. While it blocks, none of them exists.',
  request: { cluster: s.unknownObject().doc('The Cluster, without status and managed fields.') },
  response: retryResponse,
})
