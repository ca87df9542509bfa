import { commonResponse, defineHook } from '../hook.ts'
import { wireCluster } from './wire-cluster.ts'

/** The hook that core calls when the API server of the workload cluster is reachable for the first time. */
export const AfterControlPlaneInitialized = defineHook({
  name: 'AfterControlPlaneInitialized',
  tag: 'Lifecycle Hooks',
  blocking: false,
  doc: 'Called once the control plane is available for the first time, until a call succeeds. It blocks no step.',
  request: { cluster: wireCluster },
  response: commonResponse,
})
