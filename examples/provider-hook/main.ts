/**
 * Serves the extension over TLS. `INVENTORY` lists the known hosts, separated by commas.
 * `INVENTORY_VERSION=v1` registers the handler `inventory` for v1 of its hook instead of v1beta1.
 */
import { runExtension } from '@capstan/extension'
import { hostExtension } from './extension.ts'

const { INVENTORY = '', INVENTORY_VERSION } = process.env
await runExtension(hostExtension(new Set(INVENTORY.split(',')), INVENTORY_VERSION === 'v1' ? 'v1' : 'v1beta1'))
