import { BeforeClusterCreate, createCatalog, type ExtensionConfig, hookCatalog } from '@capstan/api'
import { silent, VirtualClock } from '@capstan/kube'
import {
  type Attributes,
  type Context,
  context,
  propagation,
  type Span,
  SpanKind,
  type SpanOptions,
  type SpanStatus,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fail, proceedNow } from './author/answer.ts'
import { createExtensionClient } from './client/client.ts'
import { defineExtension, on } from './author/define-extension.ts'
import { NoAnswer } from './client/hook-failed.ts'
import { extensionServer, type FetchHandler } from './server/server.ts'
import { inProcess } from './client/transport.ts'

interface RecordedSpan {
  readonly name: string
  readonly kind: SpanKind | undefined
  readonly traceId: string
  readonly spanId: string
  readonly parent: string | undefined
  readonly attributes: Attributes
  status: SpanStatus | undefined
  ended: number
}

/** Returns a tracer that records its spans, in place of the tracer of an OpenTelemetry SDK. */
function memoryTracer(): { tracer: Tracer; spans: RecordedSpan[] } {
  const spans: RecordedSpan[] = []
  const startSpan = (name: string, options: SpanOptions = {}, from: Context = context.active()): Span => {
    const parent = trace.getSpanContext(from)
    const number = String(spans.length + 1)
    const recordedSpan: RecordedSpan = {
      name,
      kind: options.kind,
      traceId: parent?.traceId ?? number.padStart(32, '0'),
      spanId: number.padStart(16, '0'),
      parent: parent?.spanId,
      attributes: { ...options.attributes },
      status: undefined,
      ended: 0,
    }
    spans.push(recordedSpan)
    const span: Partial<Span> = {
      spanContext: () => ({ traceId: recordedSpan.traceId, spanId: recordedSpan.spanId, traceFlags: 1 }),
      setAttribute(key, value) {
        recordedSpan.attributes[key] = value
        return span as Span
      },
      setStatus(status) {
        recordedSpan.status = status
        return span as Span
      },
      end: () => void recordedSpan.ended++,
    }
    return span as Span
  }
  return { tracer: { startSpan } as Tracer, spans }
}

/** A propagator of the W3C trace context, in place of the propagator of an OpenTelemetry SDK. */
const w3c: Parameters<typeof propagation.setGlobalPropagator>[0] = {
  fields: () => ['traceparent'],
  inject(from, carrier, setter) {
    const span = trace.getSpanContext(from)
    if (span) setter.set(carrier, 'traceparent', `00-${span.traceId}-${span.spanId}-01`)
  },
  extract(into, carrier, getter) {
    const [, traceId, spanId] = String(getter.get(carrier, 'traceparent') ?? '').split('-')
    if (!traceId || !spanId) return into
    return trace.setSpanContext(into, { traceId, spanId, traceFlags: 1, isRemote: true })
  },
}

const config = {
  metadata: { name: 'x' },
  spec: { clientConfig: { url: 'https://x:9443/team?token=hunter2' }, namespaceSelector: {} },
  status: {
    handlers: [
      {
        name: 'gate.x',
        requestHook: { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', hook: 'BeforeClusterCreate' },
        failurePolicy: 'Fail',
      },
    ],
  },
} as unknown as ExtensionConfig
const cluster = { apiVersion: 'v1', kind: 'Cluster', metadata: { name: 'c', namespace: 'd' } } as never
const path = '/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/gate'

let client: ReturnType<typeof memoryTracer>
let server: ReturnType<typeof memoryTracer>
let headers: Headers
beforeEach(() => {
  client = memoryTracer()
  server = memoryTracer()
})
afterEach(() => propagation.disable())

const call = async (handle: FetchHandler) => {
  const extensions = createExtensionClient({
    transport: inProcess((request) => {
      headers = request.headers
      return handle(request)
    }),
    catalog: createCatalog(hookCatalog),
    clock: new VirtualClock(),
    log: silent,
    namespaceLabels: async () => ({}),
    tracer: client.tracer,
  })
  extensions.warmUp([config])
  return extensions.callAll(BeforeClusterCreate, cluster, { cluster })
}
const serverOf = (answer: () => ReturnType<typeof proceedNow> | ReturnType<typeof fail>) =>
  extensionServer(defineExtension({ name: 'x', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => answer())] }), {
    tracer: server.tracer,
  })

describe('a hook call', () => {
  it('is one trace with a span of the client and a span of the server', async () => {
    propagation.setGlobalPropagator(w3c)
    await call(serverOf(() => proceedNow()))
    expect(headers.get('traceparent')).toBe(`00-${'1'.padStart(32, '0')}-${'1'.padStart(16, '0')}-01`)
    expect(client.spans).toEqual([
      {
        name: `POST ${path}`,
        kind: SpanKind.CLIENT,
        traceId: '1'.padStart(32, '0'),
        spanId: '1'.padStart(16, '0'),
        parent: undefined,
        attributes: {
          'http.request.method': 'POST',
          'url.full': `https://x:9443/team${path}`,
          'url.template': path,
          'server.address': 'x',
          'server.port': 9443,
          'capstan.hook': 'BeforeClusterCreate',
          'capstan.hook_version': 'v1alpha1',
          'capstan.handler': 'gate.x',
          'capstan.extension_config': 'x',
          'http.response.status_code': 200,
        },
        status: undefined,
        ended: 1,
      },
    ])
    expect(server.spans).toEqual([
      {
        name: `POST ${path}`,
        kind: SpanKind.SERVER,
        traceId: client.spans[0]!.traceId,
        spanId: '1'.padStart(16, '0'),
        parent: client.spans[0]!.spanId,
        attributes: {
          'http.request.method': 'POST',
          'http.route': path,
          'url.path': `/team${path}`,
          'url.scheme': 'https',
          'capstan.hook': 'BeforeClusterCreate',
          'capstan.hook_version': 'v1alpha1',
          'capstan.handler': 'gate',
          'http.response.status_code': 200,
        },
        status: undefined,
        ended: 1,
      },
    ])
  })

  it('succeeds without trace headers when no propagator is registered', async () => {
    expect(await call(serverOf(() => proceedNow()))).toMatchObject({ status: 'Success' })
    expect([...headers.keys()].filter((name) => name.startsWith('trace'))).toEqual([])
    expect(server.spans[0]!.parent).toBeUndefined()
  })

  it.each<[string, FetchHandler, string, number | undefined]>([
    [
      'that cannot be made',
      () => Promise.reject(new NoAnswer('ConnectionRefused', 'dial tcp: connection refused')),
      'ConnectionRefused',
      undefined,
    ],
    ['that returns status 503', async () => new Response('no', { status: 503 }), '503', 503],
    ['that returns invalid JSON', async () => new Response('<html>'), 'Garbage', 200],
    ['that returns a failure', async () => Response.json({ status: 'Failure', message: 'no' }), 'ExtensionFailure', 200],
  ])('%s ends its span as an error, and its attributes do not contain the query of the URL', async (_, handle, error, code) => {
    await expect(call(handle)).rejects.toThrow()
    const [span] = client.spans
    expect(span!.ended).toBe(1)
    expect(span!.status?.code).toBe(SpanStatusCode.ERROR)
    expect([span!.attributes['error.type'], span!.attributes['http.response.status_code']]).toEqual([error, code])
    expect(JSON.stringify(span!.attributes)).not.toContain('hunter2')
  })

  it('whose handler throws ends both spans as errors', async () => {
    const broken = serverOf(() => {
      throw new Error('broken')
    })
    await expect(call(broken)).rejects.toThrow()
    expect(server.spans[0]).toMatchObject({
      attributes: { 'error.type': 'Error', 'http.response.status_code': 500 },
      status: { code: SpanStatusCode.ERROR },
      ended: 1,
    })
    expect(client.spans[0]!.attributes['error.type']).toBe('500')
  })
})
