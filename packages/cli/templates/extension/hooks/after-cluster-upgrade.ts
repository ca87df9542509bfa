import { AfterClusterUpgrade } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** Called after the control plane and all workers were upgraded. To block the next upgrade, return `holdFor(seconds, why)`. */
export const afterClusterUpgrade = on(AfterClusterUpgrade, { name: 'after-cluster-upgrade' }, ({ request, log }) => {
  log.info('Cluster is upgraded', { version: request.kubernetesVersion })
  return proceedNow()
})
