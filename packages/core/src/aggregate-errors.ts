import { appendAll, messageOf } from '@capstan/kube'

/** Joins distinct error texts in Go's form `[a, b]`. A single text is returned as it is. */
export function aggregateText(texts: readonly string[]): string {
  const unique = [...new Set(texts)]
  return unique.length === 1 ? unique[0]! : `[${unique.join(', ')}]`
}

/**
 * Calls `act` for every value, even after a failed call, and returns the results.
 * @throws AggregateError with all errors and their distinct texts
 */
export function allOrError<T, R>(values: readonly T[], act: (value: T) => R): R[] {
  const errors: unknown[] = []
  const results: R[] = []
  for (const value of values) {
    try {
      results.push(act(value))
    } catch (err) {
      appendAll(errors, err instanceof AggregateError ? err.errors : [err])
    }
  }
  throwAggregate(errors)
  return results
}

/** Throws an AggregateError with the errors and their distinct texts, unless `errors` is empty. */
export function throwAggregate(errors: readonly unknown[]): void {
  if (errors.length > 0) throw new AggregateError(errors, aggregateText(errors.map(messageOf)))
}
