/** Entry point of `capstan`. Its subcommands access streams, environment and signals of the process only through `Io` (`io.ts`). */
import { processIo } from './process-io.ts'
import { run } from './program.ts'

const argv = process.argv.slice(2)
// Called before `run` loads the modules of the subcommand, because loading them grows the heap.
if (argv[0] === 'apiserver' || argv[0] === 'up') (await import('./small-heap.ts')).keepHeapSmall()
process.exitCode = await run(argv, processIo(process))
