/**
 * An extension with two handlers of the hook BeforeHostProvision: `inventory` registers for v1beta1 or, after its upgrade, for v1; `budget`
 * registers for v1 only.
 */
import { defineExtension, type Extension, holdFor, on, proceedNow } from '@capstan/extension'
import { BeforeHostProvision, BeforeHostProvisionV1beta1 } from './hooks.ts'

/** Version of BeforeHostProvision for which the handler `inventory` registers. */
export type InventoryVersion = 'v1beta1' | 'v1'

/** Returns the extension. `inventory` contains the known hosts, as `<namespace>/<name>`. */
export const hostExtension = (inventory: ReadonlySet<string>, version: InventoryVersion = 'v1beta1'): Extension =>
  defineExtension({
    name: 'cellar',
    handlers: [
      inventoryHandlers[version](inventory),
      on(BeforeHostProvision, { name: 'budget' }, ({ request: { cores }, settings: { coresAtMost = '64' } }) =>
        cores <= Number(coresAtMost) ? proceedNow() : holdFor(300, `${cores} cores are more than ${coresAtMost}`),
      ),
    ],
  })

const inventoryHandlers = {
  v1beta1: (inventory: ReadonlySet<string>) =>
    on(BeforeHostProvisionV1beta1, { name: 'inventory' }, ({ request: { hostname } }) =>
      inventory.has(hostname)
        ? proceedNow()
        : { kind: 'proceed', message: `${hostname} is not in the inventory`, response: { waitMinutes: 1 } },
    ),
  v1: (inventory: ReadonlySet<string>) =>
    on(BeforeHostProvision, { name: 'inventory' }, ({ request: { host } }) => {
      const hostname = `${host.namespace}/${host.name}`
      return inventory.has(hostname) ? proceedNow() : holdFor(60, `${hostname} is not in the inventory`)
    }),
}
