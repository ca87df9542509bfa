/** An extension with a handler of each version: the inventory was written when there was but one. */
import { defineExtension, type Extension, holdFor, on, proceedNow } from '@capstan/extension'
import { BeforeHostProvision, BeforeHostProvisionV1alpha1 } from './hooks.ts'

/** @param inventory hosts that are known, as `<namespace>/<name>` */
export const hostExtension = (inventory: ReadonlySet<string>): Extension =>
  defineExtension({
    name: 'cellar',
    handlers: [
      on(BeforeHostProvisionV1alpha1, { name: 'inventory' }, ({ request: { hostname } }) =>
        inventory.has(hostname)
          ? proceedNow()
          : { kind: 'proceed', message: `${hostname} is not in the inventory`, response: { waitMinutes: 1 } },
      ),
      on(BeforeHostProvision, { name: 'budget' }, ({ request: { cores }, settings: { coresAtMost = '64' } }) =>
        cores <= Number(coresAtMost) ? proceedNow() : holdFor(300, `${cores} cores are more than ${coresAtMost}`),
      ),
    ],
  })
