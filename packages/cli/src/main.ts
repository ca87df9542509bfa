/** The command's real entry: with `envtest/main.ts` the only place that touches the process, its environment and its streams. */
import { processIo } from './process-io.ts'
import { run } from './program.ts'

process.exitCode = await run(process.argv.slice(2), processIo(process))
