import { AfterWorkersUpgrade } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** Called after each upgrade step of the workers. Return `holdFor(seconds, why)` to block the next step of the upgrade. */
export const afterWorkersUpgrade = on(AfterWorkersUpgrade, { name: 'after-workers-upgrade' }, ({ request, log }) => {
  log.info('Workers are upgraded', { version: request.kubernetesVersion })
  return proceedNow()
})
