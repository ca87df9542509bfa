import { type Clock, StatusError } from '@capstan/kube'

/**
 * Returns the result of `act`. Rejects after `ms` milliseconds with a Timeout error, whose text begins with `operation`. Rejects with the
 * reason of `outer` when `outer` aborts. In both cases also aborts the signal of `act`, and passes a later result to `discard`.
 */
export function deadline<T>(
  clock: Clock,
  ms: number,
  operation: string,
  outer: AbortSignal,
  act: (signal: AbortSignal) => Promise<T>,
  discard: (late: T) => void = () => {},
): Promise<T> {
  const inner = new AbortController()
  return new Promise<T>((resolve, reject) => {
    let settled = false
    const end = () => {
      settled = true
      timer.cancel()
      outer.removeEventListener('abort', aborted)
    }
    const fail = (err: unknown) => {
      if (settled) return
      end()
      inner.abort(err)
      reject(err)
    }
    const aborted = () => fail(outer.reason)
    const timer = clock.schedule(ms, () => fail(new StatusError('Timeout', `${operation} took longer than ${ms / 1000} s`)))
    if (outer.aborted) return aborted()
    outer.addEventListener('abort', aborted, { once: true })
    act(inner.signal).then((result) => {
      if (settled) return discard(result)
      end()
      resolve(result)
    }, fail)
  })
}
