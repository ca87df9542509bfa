/** Limits the request rate of a client. Upstream: k8s.io/client-go/util/flowcontrol, a token bucket for requests and watches. */
import { type Clock, sleep, type Transport } from '@capstan/kube'

export interface Rate {
  /** Average number of requests per second. */
  readonly qps: number
  /** Number of requests that can be sent at once. */
  readonly burst: number
}

/** Returns a transport that delays requests beyond the rate, in order. */
export function limitRate(transport: Transport, { qps, burst }: Rate, clock: Clock): Transport {
  /** Number of requests that can be sent at once, as of `updatedAt`. */
  let tokens = burst
  let updatedAt = clock.elapsed()
  const waitForToken = async (signal: AbortSignal | undefined): Promise<void> => {
    const now = clock.elapsed()
    tokens = Math.min(burst, tokens + ((now - updatedAt) / 1000) * qps)
    updatedAt = now
    // A negative number counts the waiting requests; each further request waits longer.
    tokens -= 1
    if (tokens < 0) await sleep(clock, Math.ceil((-tokens / qps) * 1000), signal)
  }
  return {
    async send(request, signal) {
      // Requests for Leases are not delayed, because a Lease that is renewed late is lost. Upstream: leader election has its own client.
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
