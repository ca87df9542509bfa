/** A logger for programs of extension authors: JSON lines in pino's format. */
import type { Clock, LogFields, Logger } from '@capstan/kube'
import { messageOf } from '@capstan/kube'

const levels = { debug: 20, info: 30, warn: 40, error: 50 } as const
export type LogLevel = keyof typeof levels
export const LogLevels = Object.keys(levels) as LogLevel[]

/**
 * Creates a logger that passes the lines of this level and of higher levels to `write`, without line breaks. Each line contains the fields
 * of `bound`.
 */
export function jsonLogger(write: (line: string) => void, level: LogLevel, clock: Clock, bound: LogFields = {}): Logger {
  const method =
    (lineLevel: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      if (levels[lineLevel] < levels[level]) return
      const { err, ...rest } = fields
      const line = {
        level: levels[lineLevel],
        time: clock.now(),
        ...bound,
        ...rest,
        ...(err === undefined ? {} : { err: loggedError(err) }),
      }
      write(JSON.stringify({ ...line, msg: message }))
    }
  return {
    debug: method('debug'),
    info: method('info'),
    warn: method('warn'),
    error: method('error'),
    child: (fields) => jsonLogger(write, level, clock, { ...bound, ...fields }),
  }
}

const loggedError = (err: unknown): object | string =>
  err instanceof Error ? { type: err.name, message: err.message, stack: err.stack } : messageOf(err)
