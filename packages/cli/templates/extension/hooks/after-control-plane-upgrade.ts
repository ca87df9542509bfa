import { AfterControlPlaneUpgrade } from '@capstan/api'
import { on, proceedNow } from '@capstan/extension'

/** After each step of the control plane, before workers follow. `holdFor(seconds, why)` keeps them where they are. */
export const afterControlPlaneUpgrade = on(
  AfterControlPlaneUpgrade,
  { name: 'after-control-plane-upgrade' },
  ({ request, log }) => {
    log.info('Control plane is upgraded', { version: request.kubernetesVersion })
    return proceedNow()
  },
)
