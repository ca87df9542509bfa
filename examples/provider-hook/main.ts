/**
 * Serves the extension over TLS. The environment variable `INVENTORY` lists the known hosts, separated by commas. With
 * `INVENTORY_VERSION=v1`, the handler `inventory` is registered for v1 of its hook instead of v1beta1.
 */
import { runExtension } from '@capstan/extension'
import { hostExtension } from './extension.ts'

const { INVENTORY = '', INVENTORY_VERSION } = process.env
await runExtension(hostExtension(new Set(INVENTORY.split(',')), INVENTORY_VERSION === 'v1' ? 'v1' : 'v1beta1'))
