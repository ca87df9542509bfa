/** Fields of an error in log lines. Pure. */
import type { LogFields } from '@capstan/kube'
import { messageOf } from '@capstan/kube'

/** Names of JavaScript's error classes for programming errors. Most such errors are panics in Go. */
const bugs = new Set(['EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError'])

/** Names of JavaScript's error classes whose errors are unexpected. Errors of other classes, such as StatusError, are expected. */
const unexpected = new Set(['Error', ...bugs])

/** Whether an error is unexpected, so that its stack is logged. */
export const isUnexpected = ({ name }: Error): boolean => unexpected.has(name)

/** Returns the errors that an error aggregates, otherwise its cause, if any. */
export function nestedErrors(err: Error): readonly unknown[] {
  if (err instanceof AggregateError) return err.errors
  return err.cause === undefined ? [] : [err.cause]
}

/**
 * Returns the fields that component-base/logs/json logs for an error: its message (`err`), and for an AggregateError the aggregated errors
 * (`errCauses`). For any other error, `errVerbose` contains the stacks of the unexpected errors in its chain of causes, itself included.
 * `key` replaces `err` in these names. Upstream: encodeError in go.uber.org/zap/zapcore/error.go.
 */
export function jsonErrorFields(err: unknown, key = 'err'): LogFields {
  const message = { [key]: messageOf(err) }
  if (err instanceof AggregateError) {
    return { ...message, [`${key}Causes`]: err.errors.map((nested) => jsonErrorFields(nested, 'error')) }
  }
  const stacks = stacksOf(err, unexpected)
  return stacks.length === 0 ? message : { ...message, [`${key}Verbose`]: stacksText(stacks) }
}

/**
 * Returns the fields of an error for log lines of format `text`: its message with klog's key `err`, and the stacks of programming errors with
 * the key `stacktrace`, which upstream's managers use for the stack of a panic.
 */
export function textErrorFields(err: unknown): LogFields {
  const stacks = stacksOf(err, bugs)
  return { err: messageOf(err), ...(stacks.length === 0 ? {} : { stacktrace: stacksText(stacks) }) }
}

const stacksText = (stacks: readonly string[]): string => stacks.join('\nCaused by: ')

/** Returns the stacks of those errors whose class is in `names`, among the error and its nested errors, the outermost first. */
function stacksOf(err: unknown, names: ReadonlySet<string>): string[] {
  if (!(err instanceof Error)) return []
  const nested = nestedErrors(err).flatMap((cause) => stacksOf(cause, names))
  return err.stack !== undefined && names.has(err.name) ? [err.stack, ...nested] : nested
}
