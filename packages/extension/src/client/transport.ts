/** Carries requests to extension servers. */
import type { Target } from './client-config.ts'
import type { FetchHandler } from '../server/server.ts'

export interface HttpAnswer {
  readonly status: number
  readonly body: AsyncIterable<Uint8Array> | null
}

export interface HookTransport {
  /**
   * Posts a JSON body. Redirects are answers like any other.
   *
   * @throws what stood in the way of an answer, said as Go would; the signal's reason when it aborts first
   */
  post(
    target: Target,
    body: string,
    signal: AbortSignal,
    headers?: { readonly [name: string]: string },
    /** Called before each attempt to send the request, the first included. */
    onAttempt?: () => void,
  ): Promise<HttpAnswer>
  /** Says which targets may still be called: what is kept for others is let go, once calls that are under way have ended. */
  retain?(targets: readonly Target[]): void
  close(): void
}

/** Calls a server that is a function: no socket, no TLS. `handle` sees the URL that would have been called. */
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
