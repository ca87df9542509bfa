/**
 * Creates the logger of a command: JSON lines in pino's format, or JSON or text lines like those of Kubernetes components, on
 * stderr.
 */
import { createRequire } from 'node:module'
import type { LogFields, Logger } from '@capstan/kube'
import { messageOf, systemClock } from '@capstan/kube'
import type pino from 'pino'
import type { Io } from './io.ts'
import { jsonLine, type LogRecord, textLine } from './output/klog.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

const levels = ['debug', 'info', 'warn', 'error', 'silent'] as const satisfies readonly LogLevel[]

/** `json` and `text` are the formats of Kubernetes components. */
export type LoggingFormat = 'pino' | 'json' | 'text'

export function createLogger(io: Pick<Io, 'err'>, level: LogLevel, format: LoggingFormat = 'pino'): Logger {
  if (format !== 'pino') return kubernetesLogger(io, level, format === 'json' ? jsonLine : textLine)
  let logger: pino.Logger | undefined
  return wrap(level, () => {
    if (logger) return logger
    // pino is loaded on first use, because it has 30 modules.
    const createPino = createRequire(import.meta.url)('pino') as typeof pino
    const destination = { write: (line: string) => io.err(line.trimEnd()) }
    logger = createPino({ level, base: null, serializers: { err: withCauses, object: withoutSecrets } }, destination)
    return logger
  })
}

function kubernetesLogger(
  io: Pick<Io, 'err'>,
  level: LogLevel,
  line: (record: LogRecord) => string,
  boundFields: LogFields = {},
): Logger {
  const method = (methodLevel: Exclude<LogLevel, 'silent'>) =>
    levels.indexOf(methodLevel) < levels.indexOf(level)
      ? () => {}
      : (message: string, fields: LogFields & { err?: unknown } = {}) => {
          const { err, object, ...otherFields } = { ...boundFields, ...fields } as LogFields & { err?: unknown; object?: unknown }
          const logged = {
            ...otherFields,
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
    child: (fields) => kubernetesLogger(io, level, line, { ...boundFields, ...fields }),
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

/** Names of the classes of JavaScript, whose errors are unexpected. */
const unexpected = new Set(['Error', 'EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError'])

/**
 * Formats an error with its causes. Includes the stack only if its name is Error, TypeError or RangeError: errors with another
 * name are expected.
 */
function withCauses(err: unknown): unknown {
  if (!(err instanceof Error)) return messageOf(err)
  const nested = err instanceof AggregateError ? err.errors : err.cause === undefined ? [] : [err.cause]
  return {
    type: err.name,
    message: err.message,
    ...(unexpected.has(err.name) ? { stack: err.stack } : {}),
    ...(nested.length === 0 ? {} : { causes: nested.map(withCauses) }),
  }
}

/** Replaces a Kubernetes object with its kind, namespace and name, so that its data is not logged. */
const withoutSecrets = (value: unknown): unknown => {
  const { kind, metadata } = value as { kind?: string; metadata?: { namespace?: string; name?: string } }
  return kind && metadata ? `${kind} ${metadata.namespace ?? ''}/${metadata.name}` : value
}
