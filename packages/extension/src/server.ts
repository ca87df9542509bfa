/** An extension server as a function from Request to Response. Upstream: exp/runtime/server, v1.14. */
import type { Hook } from '@capstan/api'
import { Discovery, hookApiVersion, hookPath } from '@capstan/api'
import type { Logger } from '@capstan/kube'
import { messageOf, silent } from '@capstan/kube'
import type { Answer } from './answer.ts'
import { readBytes, TooLong } from './body.ts'
import type { Extension, Handler } from './define-extension.ts'
import { decodeWire, maxBodyBytes, missingFields, WireError } from './wire.ts'

export type FetchHandler = (request: Request) => Promise<Response>

/**
 * Serves an extension's handlers and its discovery. What goes wrong with a request is answered as a failure with code 200, as the
 * protocol has it; a handler that throws is answered with 500, which the caller's failure policy covers.
 */
export function extensionServer(extension: Extension, { log = silent }: { log?: Logger } = {}): FetchHandler {
  const discovery: Handler = { hook: Discovery, name: '', handle: () => ({ kind: 'proceed' }) }
  const routes = new Map(
    [discovery, ...extension.handlers].map((handler) => [hookPath(handler.hook, handler.name), handler] as const),
  )
  const groups = new Set([...routes.values()].map(({ hook }) => hook.group))
  const more = { handlers: extension.handlers.map(announce) }

  return async (request) => {
    const { pathname, search } = new URL(request.url)
    const clean = pathname.replace(/\/{2,}/g, '/')
    // As Go's mux does.
    if (clean !== pathname) return new Response(null, { status: 301, headers: { location: clean + search } })
    const handler = routes.get(pathname) ?? routes.get(belowPrefix(pathname, groups))
    if (!handler) return new Response('404 page not found\n', { status: 404 })
    const answer = await answerOf(handler, request, log.child({ hook: handler.hook.name, handler: handler.name }))
    if (answer === undefined) return new Response(`handler ${JSON.stringify(handler.name)} failed\n`, { status: 500 })
    const body = responseBody(handler.hook, answer)
    try {
      return Response.json(handler === discovery && answer.kind === 'proceed' ? { ...body, ...more } : body)
    } catch (err) {
      return new Response(`unable to marshal response: ${messageOf(err)}\n`, { status: 500 })
    }
  }
}

/** An extension may be reached below a prefix: what counts is the path from the group of a hook on. */
function belowPrefix(pathname: string, groups: ReadonlySet<string>): string {
  for (const group of groups) {
    const start = pathname.lastIndexOf(`/${group}/`)
    if (start > 0) return pathname.slice(start)
  }
  return pathname
}

const announce = ({ hook, name, timeoutSeconds, failurePolicy }: Handler) => ({
  name,
  requestHook: { apiVersion: hookApiVersion(hook), hook: hook.name },
  ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
  ...(failurePolicy === undefined ? {} : { failurePolicy }),
})

/** `undefined` when the handler threw. */
async function answerOf(handler: Handler, request: Request, log: Logger): Promise<Answer | undefined> {
  let decoded: Record<string, unknown>
  try {
    decoded = requestOf(handler.hook, await readBytes(request.body, maxBodyBytes))
  } catch (err) {
    if (err instanceof WireError) return { kind: 'fail', message: `error unmarshalling request: ${err.message}` }
    const why = err instanceof TooLong ? 'http: request body too large' : (err as Error).message
    return { kind: 'fail', message: `error reading request: ${why}` }
  }
  try {
    const settings = (decoded.settings ?? {}) as { [name: string]: string }
    const answer = await handler.handle({ request: decoded as never, settings, log, signal: request.signal })
    if (answer.kind === 'hold' && !handler.hook.blocking) throw new TypeError(`${handler.hook.name} cannot be held`)
    if (answer.kind === 'hold') log.info('Held back', { seconds: answer.seconds, reason: answer.message })
    return answer
  } catch (err) {
    log.error('Handler failed', { err })
    return undefined
  }
}

/** Go's server checks neither kind nor version, so neither may be missing here; what handlers rely on may not. */
function requestOf(hook: Hook, body: Uint8Array): Record<string, unknown> {
  const kind = `${hook.name}Request`
  const request = { ...decodeWire(body, hook.request, kind, 'request'), apiVersion: hookApiVersion(hook), kind }
  const missing = missingFields(request, hook.request)
  if (missing.length > 0) throw new WireError(`${kind} needs ${missing.join(', ')}`)
  return request
}

function responseBody(hook: Hook, answer: Answer): Record<string, unknown> {
  return {
    apiVersion: hookApiVersion(hook),
    kind: `${hook.name}Response`,
    status: answer.kind === 'fail' ? 'Failure' : 'Success',
    ...(answer.message ? { message: answer.message } : {}),
    ...('response' in answer ? answer.response : {}),
    ...(hook.blocking ? { retryAfterSeconds: answer.kind === 'hold' ? answer.seconds : 0 } : {}),
  }
}
