// The first file of the process in which `capstan dev` runs an extension. Each reload uses a new process.
import { runOwnModules } from './run.js'

await runOwnModules('dev-child.js', '../src/dev/child-main.ts')
