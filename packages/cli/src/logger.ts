/** The logger that ships: JSON lines on standard error, in the form that pino users know. */
import type { LogFields, Logger } from '@capstan/kube'
import { messageOf } from '@capstan/kube'
import pino from 'pino'
import type { Io } from './io.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export function createLogger(io: Pick<Io, 'err'>, level: LogLevel = 'info'): Logger {
  const destination = { write: (line: string) => io.err(line.trimEnd()) }
  return wrap(pino({ level, base: null, serializers: { err: withCauses, object: withoutSecrets } }, destination))
}

const wrap = (logger: pino.Logger): Logger => ({
  debug: (message, fields) => logger.debug(fields ?? {}, message),
  info: (message, fields) => logger.info(fields ?? {}, message),
  warn: (message, fields) => logger.warn(fields ?? {}, message),
  error: (message, fields) => logger.error(fields ?? {}, message),
  child: (fields: LogFields) => wrap(logger.child(fields)),
})

/** An error with its causes and, where it is a bug rather than an answer, its stack. */
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

/** Objects are never dumped; should one get here, its data stays out. */
const withoutSecrets = (value: unknown): unknown => {
  const { kind, metadata } = value as { kind?: string; metadata?: { namespace?: string; name?: string } }
  return kind && metadata ? `${kind} ${metadata.namespace ?? ''}/${metadata.name}` : value
}
