/** The extension that the benchmark `hooks` calls. Runs in a child process. */
import { BeforeClusterCreate } from '@capstan/api'
import { defineExtension, on, proceedNow, runExtension } from '@capstan/extension'

await runExtension(defineExtension({ name: 'bench', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => proceedNow())] }))
