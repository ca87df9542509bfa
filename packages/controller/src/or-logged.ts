/** Errors of predicates and map functions. */
import type { LogFields, Logger } from '@capstan/kube'

/**
 * Calls a predicate or map function for an event. Logs an error that it throws, and returns `otherwise`: the error must not end the informer
 * or connection that reports the event, because all controllers share it.
 *
 * @param log the logger of the controller
 * @param object identifies the object of the event in the log
 */
export function orLogged<T>(log: Logger, object: LogFields, call: () => T, otherwise: T): T {
  try {
    return call()
  } catch (err) {
    log.error('Failed to map an event to objects', { ...object, err })
    return otherwise
  }
}
