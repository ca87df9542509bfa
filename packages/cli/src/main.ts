/** The command's real entry: the only place that touches the process, its environment and its streams. */
import { run } from './program.ts'
import type { Io } from './io.ts'

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // A second Ctrl-C means now.
    if (interrupted.signal.aborted) process.exit(130)
    interrupted.abort(signal)
  })
}
// A reader that went away (`capstan up | head`) is a reason to stop, not to crash.
process.stdout.on('error', (err: NodeJS.ErrnoException) => {
  if (err.code === 'EPIPE') interrupted.abort('EPIPE')
  else throw err
})

const { stdout, stderr, env } = process
const io: Io = {
  out: (line) => void stdout.write(`${line}\n`),
  err: (line) => void stderr.write(`${line}\n`),
  // A dumb terminal cannot move its cursor: it gets plain lines.
  terminal:
    stdout.isTTY && env.TERM !== 'dumb'
      ? {
          get columns() {
            return stdout.columns || 80
          },
          get rows() {
            return stdout.rows || 24
          },
          colors: !env.NO_COLOR,
          write: (text) => void stdout.write(text),
        }
      : undefined,
  env,
  signal: interrupted.signal,
}

process.exitCode = await run(process.argv.slice(2), io)
