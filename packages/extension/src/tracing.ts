/**
 * Spans of hook calls for client and server, by OpenTelemetry's semantic conventions for HTTP. Without an OpenTelemetry SDK, which the
 * program sets up to export spans, the spans have no effect.
 */
import {
  type Attributes,
  context,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api'
import type { Hook } from '@capstan/api'
import { hookPath } from '@capstan/api'

/** Returns the tracer that the program has registered, or a tracer without effect. */
export const globalTracer = (): Tracer => trace.getTracer('@capstan/extension')

/** Attributes that are known before the call. */
export interface TracedCall {
  /** The hook in the called version. */
  readonly hook: Hook
  readonly url: URL
  readonly extensionConfig: string
  /** `<handler>.<extensionconfig>`; absent for discovery. */
  readonly handler?: string | undefined
}

/** Result of a call for its span. */
export interface SpanEnd {
  /** HTTP status; absent when there was no response. */
  readonly code?: number | undefined
  /** Error type of low cardinality; absent after a success. */
  readonly error?: string | undefined
  readonly message?: string | undefined
}

/** Runs a call in a client span. `act` gets the headers that propagate the trace, and must call `end` with the result of the call. */
export function clientSpan<T>(
  tracer: Tracer,
  { hook, url, extensionConfig, handler }: TracedCall,
  act: (headers: { [name: string]: string }, end: (result: SpanEnd) => void) => Promise<T>,
): Promise<T> {
  const route = hookPath(hook, handler === undefined ? undefined : shortName(handler, extensionConfig))
  const span = tracer.startSpan(`POST ${route}`, {
    kind: SpanKind.CLIENT,
    attributes: {
      'http.request.method': 'POST',
      // The query of a URL may contain a secret.
      'url.full': `${url.origin}${url.pathname}`,
      'url.template': route,
      'server.address': url.hostname,
      'server.port': url.port === '' ? 443 : Number(url.port),
      ...hookAttributes(hook, handler),
      'capstan.extension_config': extensionConfig,
    },
  })
  const within = trace.setSpan(context.active(), span)
  const headers: { [name: string]: string } = {}
  propagation.inject(within, headers)
  return context.with(within, () => act(headers, (result) => endSpan(span, result)))
}

/**
 * Runs the handling of a request in a server span that continues the trace of the request headers. `handler` is empty for discovery; `act`
 * must call `end` with the result.
 */
export function serverSpan<T>(
  tracer: Tracer,
  request: Request,
  { hook, handler }: { readonly hook: Hook; readonly handler: string },
  act: (end: (result: SpanEnd) => void) => Promise<T>,
): Promise<T> {
  const parent = propagation.extract(context.active(), Object.fromEntries(request.headers))
  const route = hookPath(hook, handler === '' ? undefined : handler)
  const attributes = {
    'http.request.method': request.method,
    'http.route': route,
    'url.path': new URL(request.url).pathname,
    'url.scheme': 'https',
    ...hookAttributes(hook, handler === '' ? undefined : handler),
  }
  const span = tracer.startSpan(`${request.method} ${route}`, { kind: SpanKind.SERVER, attributes }, parent)
  return context.with(trace.setSpan(parent, span), () => act((result) => endSpan(span, result)))
}

const hookAttributes = ({ name, version }: Hook, handler: string | undefined): Attributes => ({
  'capstan.hook': name,
  'capstan.hook_version': version,
  ...(handler === undefined ? {} : { 'capstan.handler': handler }),
})

function endSpan(span: Span, { code, error, message }: SpanEnd): void {
  if (code !== undefined) span.setAttribute('http.response.status_code', code)
  if (error !== undefined) {
    span.setAttribute('error.type', error)
    span.setStatus({ code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message }) })
  }
  span.end()
}

/** Returns the handler's name on its server. */
const shortName = (handler: string, extensionConfig: string): string =>
  handler.endsWith(`.${extensionConfig}`) ? handler.slice(0, -extensionConfig.length - 1) : handler
