/** Serves the extension over TLS; the hosts that the inventory knows come from the environment. */
import { runExtension } from '@capstan/extension'
import { hostExtension } from './extension.ts'

await runExtension(hostExtension(new Set(process.env.INVENTORY?.split(','))))
