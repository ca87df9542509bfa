/** Entry point of the command. Only this file and `envtest/main.ts` access `process` directly. */
import { processIo } from './process-io.ts'
import { run } from './program.ts'

const argv = process.argv.slice(2)
// Called before other modules are loaded, because loading grows the heap.
if (argv[0] === 'apiserver' || argv[0] === 'up') (await import('./small-heap.ts')).keepHeapSmall()
process.exitCode = await run(argv, processIo(process))
