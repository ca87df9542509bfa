import { AfterControlPlaneInitialized } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** Called when the API server of a new Cluster is reachable, and again until a call succeeds. Use it to install add-ons in every Cluster. */
export const afterControlPlaneInitialized = on(
  AfterControlPlaneInitialized,
  { name: 'after-control-plane-initialized' },
  ({ request, log }) => {
    log.info('Control plane is initialized', { cluster: request.cluster.metadata.name })
    return proceedNow()
  },
)
