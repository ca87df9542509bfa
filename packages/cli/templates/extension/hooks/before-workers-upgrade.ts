import { BeforeWorkersUpgrade } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** Called before each upgrade step of the workers. `holdFor(seconds, why)` blocks the step. */
export const beforeWorkersUpgrade = on(BeforeWorkersUpgrade, { name: 'before-workers-upgrade' }, ({ request, log }) => {
  log.info('Workers are about to be upgraded', { from: request.fromKubernetesVersion, to: request.toKubernetesVersion })
  return proceedNow()
})
