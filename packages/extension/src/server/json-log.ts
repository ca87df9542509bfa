/** A logger for programs of extension authors: JSON lines in pino's format. */
import type { Clock, LogFields, Logger } from '@capstan/kube'
import { messageOf } from '@capstan/kube'

const levels = { debug: 20, info: 30, warn: 40, error: 50 } as const
export type LogLevel = keyof typeof levels
export const LogLevels = Object.keys(levels) as LogLevel[]

export function jsonLogger(write: (line: string) => void, level: LogLevel, clock: Clock, bound: LogFields = {}): Logger {
  const method =
    (one: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      if (levels[one] < levels[level]) return
      const { err, ...rest } = fields
      const line = {
        level: levels[one],
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
