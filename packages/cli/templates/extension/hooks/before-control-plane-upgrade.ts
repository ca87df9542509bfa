import { BeforeControlPlaneUpgrade } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** Called before each upgrade step of the control plane. Return `holdFor(seconds, why)` to block the step. */
export const beforeControlPlaneUpgrade = on(
  BeforeControlPlaneUpgrade,
  { name: 'before-control-plane-upgrade' },
  ({ request, log }) => {
    log.info('Control plane is about to be upgraded', { from: request.fromKubernetesVersion, to: request.toKubernetesVersion })
    return proceedNow()
  },
)
