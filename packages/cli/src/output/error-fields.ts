/** Fields of an error in log lines. Pure. */
import type { LogFields } from '@capstan/kube'
import { messageOf } from '@capstan/kube'

/** Names of the classes of JavaScript for programming errors. Upstream's managers panic instead. */
const bugs = new Set(['EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError'])

/** Names of the classes of JavaScript, whose errors are unexpected. */
const unexpected = new Set(['Error', ...bugs])

/** Whether the stack of the error is logged: errors of other classes are expected. */
export const isUnexpected = ({ name }: Error): boolean => unexpected.has(name)

/** Returns the errors that led to an error. */
export const nestedErrors = (err: Error): readonly unknown[] =>
  err instanceof AggregateError ? err.errors : err.cause === undefined ? [] : [err.cause]

/**
 * Returns the fields that component-base/logs/json logs for an error: its message, and with it the errors that it aggregates
 * (`errCauses`) or the stacks of unexpected errors (`errVerbose`). Upstream: encodeError in go.uber.org/zap/zapcore/error.go.
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
 * Returns the fields of an error in text: its message as klog logs it, and the stacks of programming errors with the key that upstream's
 * managers use for the stack of a panic.
 */
export function textErrorFields(err: unknown): LogFields {
  const stacks = stacksOf(err, bugs)
  return { err: messageOf(err), ...(stacks.length === 0 ? {} : { stacktrace: stacksText(stacks) }) }
}

const stacksText = (stacks: readonly string[]): string => stacks.join('\nCaused by: ')

/** Returns the stacks of the error and its causes whose classes are in `names`, the outermost first. */
function stacksOf(err: unknown, names: ReadonlySet<string>): string[] {
  if (!(err instanceof Error)) return []
  const nested = nestedErrors(err).flatMap((cause) => stacksOf(cause, names))
  return err.stack !== undefined && names.has(err.name) ? [err.stack, ...nested] : nested
}
