/** Sends requests to extension servers. */
import type { Target } from './client-config.ts'
import type { FetchHandler } from '../server/server.ts'

export interface HttpResponse {
  readonly status: number
  readonly body: AsyncIterable<Uint8Array> | null
}

export interface HookTransport {
  /**
   * Posts a JSON body. Redirects are returned as responses.
   *
   * @throws the signal's reason if the signal is aborted before the response. Otherwise, if there is no response: a `NoAnswer` with
   *   the error text of Go's HTTP client, which upstream uses; Node's error if Go has no such error; or the `HookFailed` of the call if
   *   the transport knows it, for example from a tape
   */
  post(
    target: Target,
    body: string,
    signal: AbortSignal,
    headers?: { readonly [name: string]: string },
    /** Called before each attempt to send the request, including the first, by transports that may make several attempts. */
    onAttempt?: () => void,
  ): Promise<HttpResponse>
  /** Keeps only connections to these targets. Closes other connections after their calls. */
  retain?(targets: readonly Target[]): void
  close(): void
}

/** Returns a transport that calls a server function without socket and TLS. `handle` receives the URL of the call. */
export const inProcess = (handle: FetchHandler): HookTransport => ({
  async post({ url }, body, signal, headers = {}) {
    const aborted = new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason)
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
    const response = await Promise.race([handle(new Request(url, { method: 'POST', body, signal, headers })), aborted])
    return { status: response.status, body: response.body as AsyncIterable<Uint8Array> | null }
  },
  close() {},
})
