import { runExtension } from '@capstan/extension'
import { extension } from './extension.ts'

// Serves the extension until SIGTERM or SIGINT. `node main.ts --help` lists the flags.
await runExtension(extension)
