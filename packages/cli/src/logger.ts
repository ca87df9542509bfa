/** The logger of the command: JSON lines on stderr in pino's format, or klog lines like those of Kubernetes components. */
import { createRequire } from 'node:module'
import type { LogFields, Logger } from '@capstan/kube'
import { messageOf, systemClock } from '@capstan/kube'
import type pino from 'pino'
import type { Io } from './io.ts'
import { jsonLine, type LogRecord, textLine } from './output/klog.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

const levels = ['debug', 'info', 'warn', 'error', 'silent'] as const satisfies readonly LogLevel[]

/** `json` and `text` are upstream's. */
export type LoggingFormat = 'pino' | 'json' | 'text'

export function createLogger(io: Pick<Io, 'err'>, level: LogLevel, format: LoggingFormat = 'pino'): Logger {
  if (format !== 'pino') return kubernetesLogger(io, level, format === 'json' ? jsonLine : textLine)
  let logger: pino.Logger | undefined
  return wrap(level, () => {
    if (logger) return logger
    // Loaded on first use: it has thirty modules.
    const make = createRequire(import.meta.url)('pino') as typeof pino
    const destination = { write: (line: string) => io.err(line.trimEnd()) }
    logger = make({ level, base: null, serializers: { err: withCauses, object: withoutSecrets } }, destination)
    return logger
  })
}

function kubernetesLogger(
  io: Pick<Io, 'err'>,
  level: LogLevel,
  line: (record: LogRecord) => string,
  bound: LogFields = {},
): Logger {
  const method = (methodLevel: Exclude<LogLevel, 'silent'>) =>
    levels.indexOf(methodLevel) < levels.indexOf(level)
      ? () => {}
      : (message: string, fields: LogFields & { err?: unknown } = {}) => {
          const { err, object, ...rest } = { ...bound, ...fields } as LogFields & { err?: unknown; object?: unknown }
          const logged = {
            ...rest,
            ...(object === undefined ? {} : { object: withoutSecrets(object) }),
            ...(err === undefined ? {} : { err: messageOf(err) }),
          }
          io.err(line({ at: systemClock.now(), level: methodLevel, message, fields: logged, pid: process.pid }))
        }
  return {
    debug: method('debug'),
    info: method('info'),
    warn: method('warn'),
    error: method('error'),
    child: (fields) => kubernetesLogger(io, level, line, { ...bound, ...fields }),
  }
}

function wrap(level: LogLevel, logger: () => pino.Logger): Logger {
  const method = (methodLevel: Exclude<LogLevel, 'silent'>) =>
    levels.indexOf(methodLevel) < levels.indexOf(level)
      ? () => {}
      : (message: string, fields?: LogFields) => logger()[methodLevel](fields ?? {}, message)
  return {
    debug: method('debug'),
    info: method('info'),
    warn: method('warn'),
    error: method('error'),
    child(fields) {
      let child: pino.Logger | undefined
      return wrap(level, () => (child ??= logger().child(fields)))
    },
  }
}

/** Formats an error with its causes and, unless it is an expected error, its stack. */
function withCauses(err: unknown): unknown {
  if (!(err instanceof Error)) return messageOf(err)
  const nested = err instanceof AggregateError ? err.errors : err.cause === undefined ? [] : [err.cause]
  return {
    type: err.name,
    message: err.message,
    ...(err.name === 'Error' || err.name === 'TypeError' || err.name === 'RangeError' ? { stack: err.stack } : {}),
    ...(nested.length === 0 ? {} : { causes: nested.map(withCauses) }),
  }
}

/** Formats an object by kind and name. Objects should not be logged; if one is, its data stays out of the log. */
const withoutSecrets = (value: unknown): unknown => {
  const { kind, metadata } = value as { kind?: string; metadata?: { namespace?: string; name?: string } }
  return kind && metadata ? `${kind} ${metadata.namespace ?? ''}/${metadata.name}` : value
}
