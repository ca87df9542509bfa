import { AfterControlPlaneInitialized } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** Called when the condition ControlPlaneInitialized of a new Cluster is True, and again until a call succeeds. Use it to install add-ons. */
export const afterControlPlaneInitialized = on(
  AfterControlPlaneInitialized,
  { name: 'after-control-plane-initialized' },
  ({ request, log }) => {
    log.info('Control plane is initialized', { cluster: request.cluster.metadata.name })
    return proceedNow()
  },
)
