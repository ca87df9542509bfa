/** Limits the request rate of a client. Upstream: k8s.io/client-go/util/flowcontrol, a token bucket for requests and watches. */
import { type Clock, sleep, type Transport } from '@capstan/kube'

export interface Rate {
  /** Requests a second, over time. */
  readonly qps: number
  /** Requests that may be sent at once. */
  readonly burst: number
}

/** Delays requests beyond the rate, in order. */
export function limitRate(transport: Transport, { qps, burst }: Rate, clock: Clock): Transport {
  /** Requests that may be sent at once, as of `at`. */
  let tokens = burst
  let at = clock.elapsed()
  const turn = async (signal: AbortSignal | undefined): Promise<void> => {
    const now = clock.elapsed()
    tokens = Math.min(burst, tokens + ((now - at) / 1000) * qps)
    at = now
    // Below zero it is a debt: later requests wait longer.
    tokens -= 1
    if (tokens < 0) await sleep(clock, Math.ceil((-tokens / qps) * 1000), signal)
  }
  return {
    async send(request, signal) {
      // A Lease that is renewed late is lost. Upstream: leader election has a client of its own.
      if (request.group !== 'coordination.k8s.io') await turn(signal)
      return transport.send(request, signal)
    },
    async watch(request, signal) {
      await turn(signal)
      return transport.watch(request, signal)
    },
    close: () => transport.close(),
  }
}
