/** Errors of predicates and map functions. */
import type { LogFields, Logger } from '@capstan/kube'

/**
 * Calls a predicate or map function for an event. If it throws, logs the error and returns `otherwise`: all controllers share the informer or
 * connection that reports the event, so the error must not end that informer or connection.
 *
 * @param log the logger of the controller
 * @param object identifies the object of the event in the log
 */
export function orLogged<T>(log: Logger, object: LogFields, call: () => T, otherwise: T): T {
  try {
    return call()
  } catch (err) {
    log.error('A predicate or map function failed for an event', { ...object, err })
    return otherwise
  }
}
