import { AfterClusterUpgrade } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** Called when the control plane and all workers are upgraded. To block the next upgrade, return `holdFor(seconds, why)`. */
export const afterClusterUpgrade = on(AfterClusterUpgrade, { name: 'after-cluster-upgrade' }, ({ request, log }) => {
  log.info('Cluster is upgraded', { version: request.kubernetesVersion })
  return proceedNow()
})
