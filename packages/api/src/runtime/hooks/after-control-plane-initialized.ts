import { commonResponse, defineHook } from '../hook.ts'
import { wireCluster } from './wire-cluster.ts'

/** Hook that is called when the control plane of a topology is initialized, and again until a call succeeds. It blocks no step. */
export const AfterControlPlaneInitialized = defineHook({
  name: 'AfterControlPlaneInitialized',
  tag: 'Lifecycle Hooks',
  blocking: false,
  doc: 'Called when the control plane is initialized for the first time, and again until a call succeeds. It blocks no step.',
  request: { cluster: wireCluster },
  response: commonResponse,
})
