/**
 * Creates the logger of a command: JSON lines in pino's format, or JSON or text lines like those of Kubernetes components, on
 * stderr.
 */
import { createRequire } from 'node:module'
import type { LogFields, Logger } from '@capstan/kube'
import { messageOf, systemClock } from '@capstan/kube'
import type pino from 'pino'
import type { Io } from './io.ts'
import { isUnexpected, jsonErrorFields, nestedErrors, textErrorFields } from './output/error-fields.ts'
import { jsonLine, type LogRecord, textLine } from './output/klog.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

const levels = ['debug', 'info', 'warn', 'error', 'silent'] as const satisfies readonly LogLevel[]

/** `json` and `text` are the formats of Kubernetes components. */
export type LoggingFormat = 'pino' | 'json' | 'text'

export function createLogger(io: Pick<Io, 'err'>, level: LogLevel, format: LoggingFormat = 'pino'): Logger {
  if (format !== 'pino') return kubernetesLogger(io, level, formats[format])
  let logger: pino.Logger | undefined
  return lazyLogger(level, () => {
    if (logger) return logger
    // pino is loaded on first use, because it has about 30 modules.
    const createPino = createRequire(import.meta.url)('pino') as typeof pino
    const destination = { write: (line: string) => io.err(line.trimEnd()) }
    logger = createPino({ level, base: null, serializers: { err: withCauses, object: withoutSecrets } }, destination)
    return logger
  })
}

interface KubernetesFormat {
  readonly line: (record: LogRecord) => string
  readonly errorFields: (err: unknown) => LogFields
}

const formats: { readonly [format in Exclude<LoggingFormat, 'pino'>]: KubernetesFormat } = {
  json: { line: jsonLine, errorFields: (err) => jsonErrorFields(err) },
  text: { line: textLine, errorFields: textErrorFields },
}

function kubernetesLogger(io: Pick<Io, 'err'>, level: LogLevel, format: KubernetesFormat, boundFields: LogFields = {}): Logger {
  const method = (methodLevel: Exclude<LogLevel, 'silent'>) =>
    levels.indexOf(methodLevel) < levels.indexOf(level)
      ? () => {}
      : (message: string, fields: LogFields & { err?: unknown } = {}) => {
          const { err, object, ...otherFields } = { ...boundFields, ...fields } as LogFields & { err?: unknown; object?: unknown }
          const logged = {
            ...otherFields,
            ...(object === undefined ? {} : { object: withoutSecrets(object) }),
            ...(err === undefined ? {} : format.errorFields(err)),
          }
          io.err(format.line({ at: systemClock.now(), level: methodLevel, message, fields: logged, pid: process.pid }))
        }
  return {
    debug: method('debug'),
    info: method('info'),
    warn: method('warn'),
    error: method('error'),
    child: (fields) => kubernetesLogger(io, level, format, { ...boundFields, ...fields }),
  }
}

/** Returns a logger that requests its pino logger only when it writes a line. */
function lazyLogger(level: LogLevel, logger: () => pino.Logger): Logger {
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
      return lazyLogger(level, () => (child ??= logger().child(fields)))
    },
  }
}

/** Formats an error with its causes, and the stacks of unexpected errors. */
function withCauses(err: unknown): unknown {
  if (!(err instanceof Error)) return messageOf(err)
  const nested = nestedErrors(err)
  return {
    type: err.name,
    message: err.message,
    ...(isUnexpected(err) ? { stack: err.stack } : {}),
    ...(nested.length === 0 ? {} : { causes: nested.map(withCauses) }),
  }
}

/** Replaces a Kubernetes object with its kind, namespace and name, so that its data is not logged. */
const withoutSecrets = (value: unknown): unknown => {
  const { kind, metadata } = value as { kind?: string; metadata?: { namespace?: string; name?: string } }
  return kind && metadata ? `${kind} ${metadata.namespace ?? ''}/${metadata.name}` : value
}
