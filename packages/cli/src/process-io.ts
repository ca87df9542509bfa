import { type Clock, seconds } from '@capstan/kube'
import type { Io } from './io.ts'

/** Time that a command has to stop after a signal. */
const MostToStop = seconds(1.5)

/**
 * The world as the running process has it: its streams, its environment, its signals. For programs' entries only. A command that has not
 * ended 1.5 seconds after a signal, or that receives a second one, is ended by it: `process.exit` would wait for blocked file system calls.
 */
export function processIo(running: NodeJS.Process, clock: Pick<Clock, 'schedule'> = withoutWaiting): Io {
  const { stdout, stderr, env, pid, cwd } = running
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    const end = () => {
      // Without listeners a signal ends the process.
      running.removeAllListeners(signal)
      running.kill(pid, signal)
    }
    running.on(signal, () => {
      // A second Ctrl-C means now.
      if (interrupted.signal.aborted) return end()
      clock.schedule(MostToStop, end)
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

/** Timers that do not keep the process running. */
const withoutWaiting: Pick<Clock, 'schedule'> = {
  schedule(after, callback) {
    const timer = setTimeout(callback, after).unref()
    return { cancel: () => clearTimeout(timer) }
  },
}
