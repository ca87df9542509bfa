import { AfterWorkersUpgrade } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** After each step of the workers. `holdFor(seconds, why)` keeps the next step away. */
export const afterWorkersUpgrade = on(AfterWorkersUpgrade, { name: 'after-workers-upgrade' }, ({ request, log }) => {
  log.info('Workers are upgraded', { version: request.kubernetesVersion })
  return proceedNow()
})
