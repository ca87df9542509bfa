import type { Clock } from '@capstan/kube'

/** Returns the result of `promise`, or rejects with the signal's reason if the signal aborts first. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** Runs `work`, and rejects after `timeout` milliseconds or when `signal` aborts, even if `work` ignores its signal. */
export async function withTimeout<T>(
  clock: Clock,
  timeout: number,
  work: (limit: AbortSignal) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const limit = new AbortController()
  const timer = clock.schedule(timeout, () => limit.abort(new Error(`no response within ${timeout / 1000}s`)))
  try {
    const until = signal ? AbortSignal.any([signal, limit.signal]) : limit.signal
    return await unlessAborted(work(until), until)
  } finally {
    timer.cancel()
  }
}
