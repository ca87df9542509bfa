import { AfterControlPlaneInitialized } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** The API server of the Cluster answers for the first time: a moment to install what belongs into every Cluster. */
export const afterControlPlaneInitialized = on(
  AfterControlPlaneInitialized,
  { name: 'after-control-plane-initialized' },
  ({ request, log }) => {
    log.info('Control plane answers', { cluster: request.cluster.metadata.name })
    return proceedNow()
  },
)
