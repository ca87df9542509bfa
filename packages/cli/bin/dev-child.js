// The first file of the process in which `capstan dev` runs an extension: every saved file starts one.
import { runOwnModules } from './run.js'

await runOwnModules('dev-child.js', '../src/dev/child-main.ts')
