import { AfterClusterUpgrade } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** The whole Cluster is upgraded. `holdFor(seconds, why)` keeps the next upgrade away. */
export const afterClusterUpgrade = on(AfterClusterUpgrade, { name: 'after-cluster-upgrade' }, ({ request, log }) => {
  log.info('Cluster is upgraded', { version: request.kubernetesVersion })
  return proceedNow()
})
