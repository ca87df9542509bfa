import { runExtension } from '@capstan/extension'
import { extension } from './extension.ts'

// Flags, certificate, health, metrics and a graceful stop: `node main.ts --help`.
await runExtension(extension)
