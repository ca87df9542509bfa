import { type Clock, seconds } from '@capstan/kube'
import { Interrupted, type Io } from './io.ts'

/** Time limit for a command to end after a signal. */
const StopTimeLimit = seconds(1.5)

/**
 * Returns the I/O of the running process: its streams, environment and signals. Besides tests, only entry points of programs use it.
 *
 * Until the command reads `signal`, a signal ends the process at once, even while the main thread reads a file or computes.
 * Afterwards, a signal kills the command if it does not end within 1.5 seconds. A second signal, or a signal after the pipe of stdout was
 * closed, kills it at once. `process.exit` is not used, because it would wait for blocked file system calls.
 */
export function processIo(running: NodeJS.Process, clock: Pick<Clock, 'schedule'> = unrefTimers): Io {
  const { stdout, stderr, env, pid, cwd } = running
  const interrupted = new AbortController()
  let isListening = false
  const listen = () => {
    isListening = true
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      const end = () => {
        // A signal without listeners ends the process.
        running.removeAllListeners(signal)
        running.kill(pid, signal)
      }
      running.on(signal, () => {
        // A second signal, or a signal after the pipe of stdout was closed, ends the process at once.
        if (interrupted.signal.aborted) return end()
        clock.schedule(StopTimeLimit, end)
        interrupted.abort(new Interrupted(signal))
      })
    }
  }
  // A closed pipe (`capstan up | head`) interrupts the command without a time limit, and does not end it with the error EPIPE.
  stdout.on('error', (err: NodeJS.ErrnoException) => {
    if (err.code === 'EPIPE') interrupted.abort(new Interrupted('a closed pipe'))
    else throw err
  })
  return {
    out: (line) => void stdout.write(`${line}\n`),
    err: (line) => void stderr.write(`${line}\n`),
    // A dumb terminal cannot move its cursor, so plain lines are printed.
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
    get signal() {
      if (!isListening) listen()
      return interrupted.signal
    },
  }
}

/** Timers that do not keep the process running. */
const unrefTimers: Pick<Clock, 'schedule'> = {
  schedule(after, callback) {
    const timer = setTimeout(callback, after).unref()
    return { cancel: () => clearTimeout(timer) }
  },
}
