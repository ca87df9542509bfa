/** Limits the request rate of a client. Upstream: k8s.io/client-go/util/flowcontrol, a token bucket for requests and watches. */
import { type Clock, sleep, type Transport } from '@capstan/kube'

export interface Rate {
  /** Average number of requests per second. */
  readonly qps: number
  /** Number of requests that can be sent at once. */
  readonly burst: number
}

/** Returns a transport that delays requests and watches beyond the rate, in order. Does not delay requests for Leases, except watches. */
export function limitRate(transport: Transport, { qps, burst }: Rate, clock: Clock): Transport {
  /** Number of tokens at the time `updatedAt`; each request takes one. Negative if waiting requests have reserved later tokens. */
  let tokens = burst
  let updatedAt = clock.elapsed()
  /** Time at which the latest request was sent, or will be sent if it still waits. */
  let lastAt = updatedAt
  const addTokens = (more: number): void => {
    const now = clock.elapsed()
    tokens = Math.min(burst, tokens + ((now - updatedAt) / 1000) * qps + more)
    updatedAt = now
  }
  const waitForToken = async (signal: AbortSignal | undefined): Promise<void> => {
    signal?.throwIfAborted()
    addTokens(0)
    tokens -= 1
    const delay = tokens < 0 ? (-tokens / qps) * 1000 : 0
    const at = updatedAt + delay
    lastAt = at
    if (delay === 0) return
    try {
      await sleep(clock, Math.ceil(delay), signal)
    } catch (err) {
      returnToken(at)
      throw err
    }
  }
  /** Returns the token of an aborted request that was due at the time `at`. Upstream: Reservation.CancelAt of golang.org/x/time/rate. */
  const returnToken = (at: number): void => {
    // Tokens that later requests have reserved are not restored, because these requests keep their times.
    const restored = 1 - ((lastAt - at) / 1000) * qps
    if (restored <= 0 || at < clock.elapsed()) return
    addTokens(restored)
    if (at === lastAt) lastAt = Math.max(updatedAt, at - 1000 / qps)
  }
  return {
    async send(request, signal) {
      // Requests for Leases are not delayed, because a Lease that is renewed too late is lost. Upstream: leader election has its own client.
      if (request.group !== 'coordination.k8s.io') await waitForToken(signal)
      return transport.send(request, signal)
    },
    async watch(request, signal) {
      await waitForToken(signal)
      return transport.watch(request, signal)
    },
    close: () => transport.close(),
  }
}
