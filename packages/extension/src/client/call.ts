/** One call of one handler, from request object to response object. Upstream: internal/runtime/client, httpCall, v1.14. */
import type { Hook } from '@capstan/api'
import { hookApiVersion } from '@capstan/api'
import type { Clock } from '@capstan/kube'
import { durationText, seconds, writeJSON } from '@capstan/kube'
import { readBytes, TooLong } from '../wire/body.ts'
import type { Target } from './client-config.ts'
import { HookFailed, NoAnswer } from './hook-failed.ts'
import type { HookProblem } from './hook-problems.ts'
import { goQuoted } from '../wire/go-string.ts'
import type { HookTransport, HttpResponse } from './transport.ts'
import { decodeWire, maxBodyBytes, WireError } from '../wire/wire.ts'

export interface Call {
  readonly hook: Hook
  readonly target: Target
  readonly timeoutSeconds: number
  /** The request without apiVersion and kind. */
  readonly request: object
}

interface CallContext {
  readonly transport: HookTransport
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
  /** Headers in addition to those of the body. */
  readonly headers?: { readonly [name: string]: string } | undefined
  /** Called with the HTTP status as soon as it is known. */
  onStatus?(code: number): void
  /** Called before each attempt to send the request, by transports that may make several attempts. */
  onAttempt?(): void
}

/**
 * Calls a handler and returns the decoded response, which may have status Failure.
 *
 * @throws HookFailed, or the signal's reason if it aborts
 */
export async function callHandler(
  { hook, target, timeoutSeconds, request }: Call,
  { transport, clock, signal, headers, onStatus, onAttempt }: CallContext,
): Promise<Record<string, unknown>> {
  const url = new URL(target.url)
  const timeout = durationText(seconds(timeoutSeconds))
  // A query in the configured URL is rare, and parsing it is slow.
  if (url.search === '') url.search = `timeout=${timeout}`
  else url.searchParams.append('timeout', timeout)
  const expired = new AbortController()
  const timer = clock.schedule(seconds(timeoutSeconds), () => expired.abort(new Error('http request timeout expired')))
  const callSignal = signal ? AbortSignal.any([signal, expired.signal]) : expired.signal
  const failed = (err: unknown): HookFailed => {
    if (signal?.aborted) throw signal.reason
    // The transport has determined the error itself, for example from a tape (recorded hook calls).
    if (err instanceof HookFailed) return err
    const { message } = expired.signal.aborted ? (expired.signal.reason as Error) : (err as Error)
    const code = expired.signal.aborted ? 'timeout' : 'unreachable'
    const problem = code === 'unreachable' && err instanceof NoAnswer ? err.problem : undefined
    return new HookFailed(code, `http call failed: Post ${JSON.stringify(url.href)}: ${message}`, { cause: err, problem })
  }
  try {
    const body = writeJSON({ apiVersion: hookApiVersion(hook), kind: `${hook.name}Request`, ...request })
    const response = await transport.post({ ...target, url }, body, callSignal, headers, onAttempt).catch((err) => {
      throw failed(err)
    })
    onStatus?.(response.status)
    if (response.status !== 200) throw await unexpectedStatus(response, signal)
    const responseBody = await readBytes(response.body, maxBodyBytes).catch((err) => {
      if (err instanceof TooLong) throw invalidResponse('http: response body too large', 'TooLong')
      throw callSignal.aborted ? failed(err) : incompleteResponse(err)
    })
    return decodeResponse(hook, responseBody)
  } finally {
    timer.cancel()
  }
}

function decodeResponse(hook: Hook, body: Uint8Array): Record<string, unknown> {
  const struct = `${hook.name}Response`
  try {
    return decodeWire(body, hook.response, struct, 'response')
  } catch (err) {
    throw err instanceof WireError ? invalidResponse(err.message, err.isJson ? 'Schema' : 'Garbage') : err
  }
}

const invalidResponse = (reason: string, problem: HookProblem): HookFailed =>
  new HookFailed('bad-answer', `http call failed: failed to decode response: ${reason}`, { problem })

/** Returns the error for an incomplete response, with the text of upstream's decoder. */
const incompleteResponse = (err: unknown): HookFailed =>
  new HookFailed('unreachable', `http call failed: failed to decode response: ${(err as Error).message}`, {
    cause: err,
    problem: err instanceof NoAnswer ? err.problem : undefined,
  })

/** @throws the signal's reason if it aborts while the body is read */
async function unexpectedStatus({ status, body }: HttpResponse, signal: AbortSignal | undefined): Promise<HookFailed> {
  const head = `http call failed: got response with status code ${status} != 200`
  const problem = status === 404 ? 'NotFound' : 'UnexpectedStatus'
  try {
    const bytes = await readBytes(body, maxBodyBytes)
    const excerpt = goQuoted(bytes.subarray(0, 512), bytes.length > 512 ? '...' : '')
    return new HookFailed('bad-status', `${head}: response : ${excerpt}`, { problem })
  } catch {
    signal?.throwIfAborted()
    return new HookFailed('bad-status', `${head}: failed to read response body`, { problem })
  }
}
