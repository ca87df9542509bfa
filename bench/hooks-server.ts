/** The server that the bench of hooks calls: a process of its own, as an extension is run. */
import { BeforeClusterCreate } from '@capstan/api'
import { defineExtension, on, proceedNow, runExtension } from '@capstan/extension'

await runExtension(defineExtension({ name: 'bench', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => proceedNow())] }))
