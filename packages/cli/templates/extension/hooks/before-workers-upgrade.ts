import { BeforeWorkersUpgrade } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** Before each step of the workers. `holdFor(seconds, why)` keeps them where they are. */
export const beforeWorkersUpgrade = on(BeforeWorkersUpgrade, { name: 'before-workers-upgrade' }, ({ request, log }) => {
  log.info('Workers are about to be upgraded', { from: request.fromKubernetesVersion, to: request.toKubernetesVersion })
  return proceedNow()
})
