import type { Io } from './io.ts'

/** The world as the running process has it: its streams, its environment, its signals. For programs' entries only. */
export function processIo({ stdout, stderr, env, pid, cwd }: NodeJS.Process): Io {
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // A second Ctrl-C means now.
      if (interrupted.signal.aborted) process.exit(130)
      interrupted.abort(signal)
    })
  }
  // A reader that went away (`capstan up | head`) is a reason to stop, not to crash.
  stdout.on('error', (err: NodeJS.ErrnoException) => {
    if (err.code === 'EPIPE') interrupted.abort('EPIPE')
    else throw err
  })
  return {
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
    pid,
    cwd: cwd(),
    env,
    signal: interrupted.signal,
  }
}
