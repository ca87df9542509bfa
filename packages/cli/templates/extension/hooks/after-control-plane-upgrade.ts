import { AfterControlPlaneUpgrade } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** Called after each upgrade step of the control plane. `holdFor(seconds, why)` blocks the next upgrade step of workers and control plane. */
export const afterControlPlaneUpgrade = on(
  AfterControlPlaneUpgrade,
  { name: 'after-control-plane-upgrade' },
  ({ request, log }) => {
    log.info('Control plane is upgraded', { version: request.kubernetesVersion })
    return proceedNow()
  },
)
