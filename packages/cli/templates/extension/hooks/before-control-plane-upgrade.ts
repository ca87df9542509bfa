import { BeforeControlPlaneUpgrade } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** Before each step of the control plane. `holdFor(seconds, why)` keeps it where it is. */
export const beforeControlPlaneUpgrade = on(
  BeforeControlPlaneUpgrade,
  { name: 'before-control-plane-upgrade' },
  ({ request, log }) => {
    log.info('Control plane is about to be upgraded', { from: request.fromKubernetesVersion, to: request.toKubernetesVersion })
    return proceedNow()
  },
)
