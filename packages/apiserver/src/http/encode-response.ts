/** Encodes results of the engine, errors and discovery documents in the format that the client accepts. */
import { setImmediate } from 'node:timers/promises'
import type { Clock, Status } from '@capstan/kube'
import { readJSON, StatusError, writeJSON } from '@capstan/kube'
import type { ApiResponse } from '../verbs/engine.ts'
import type { Resource } from '../registry/resource.ts'
import { listBytes, listParts, longLine, objectLine } from './encode.ts'
import type { HttpResponse, HttpRequest } from './exchange.ts'
import type { Representation } from './negotiate.ts'
import { acceptsOnlyProtobuf, parseAccept, representationOf, wantsPretty } from './negotiate.ts'
import { partialMetadata, partialMetadataList } from './table/partial-metadata.ts'
import { notAcceptable } from './errors.ts'
import { encodeStatus } from './protobuf/protobuf-status.ts'
import { includeObjectOf, tableOf } from './table/table.ts'
import { warningHeaders } from './warning-headers.ts'
import { formatYAML } from './body/yaml.ts'

/**
 * Encodes the result of a verb. @throws StatusError NotAcceptable when the result is not available in the representation, BadRequest when
 * the query of a Table has an invalid `includeObject`
 */
export function encodeResponse(
  clock: Clock,
  resource: Resource,
  { code, body, warnings }: ApiResponse,
  representation: Representation,
  query: URLSearchParams,
): HttpResponse | Promise<HttpResponse> {
  const headers = warnings.length === 0 ? {} : { warning: warningHeaders(warnings) }
  if (isStatus(body)) return responseOf(code, body, representation, headers)
  switch (representation.as) {
    case 'Table':
      return responseOf(
        code,
        tableOf(resource, body, { includeObject: includeObjectOf(query), version: representation.version, now: clock.now() }),
        representation,
        headers,
      )
    case 'PartialObjectMetadataList':
      if (!('items' in body)) {
        const text = `you requested PartialObjectMetadataList, but the requested object is not a list (${goType(resource)})`
        throw new StatusError('NotAcceptable', text)
      }
      return responseOf(code, partialMetadataList(body, representation.version), representation, headers)
    case 'PartialObjectMetadata':
      if ('items' in body) {
        const text = `you requested PartialObjectMetadata, but the requested object is a list (${goType(resource)}List)`
        throw new StatusError('NotAcceptable', text)
      }
      return responseOf(code, partialMetadata(body, representation.version), representation, headers)
    case undefined:
  }
  const isCompactJSON = representation.format === 'json' && !representation.pretty
  if (!('items' in body)) {
    const line = isCompactJSON ? longLine(clock, body) : undefined
    return line ? line.then(jsonLine(code, headers)) : responseOf(code, body, representation, headers)
  }
  // Upstream omits apiVersion and kind of items of built-in lists.
  const typedItems = !resource.builtin
  if (isCompactJSON) {
    return {
      status: code,
      headers: { ...headers, 'content-type': 'application/json' },
      body: inParts(listParts(body, { typedItems })),
    }
  }
  return responseOf(code, readJSON(listBytes(body, { typedItems }).toString()) as object, representation, headers)
}

/** Returns a body of the parts: a buffer if there is only one part. Parts after the second are encoded only when the socket accepts more data. */
function inParts(parts: Generator<Buffer, void>): HttpResponse['body'] {
  const first = parts.next().value!
  const second = parts.next()
  if (second.done) return first
  return (async function* () {
    yield first
    yield second.value
    for (const part of parts) {
      await setImmediate()
      yield part
    }
  })()
}

function responseOf(
  status: number,
  value: object,
  { format, pretty }: Pick<Representation, 'format' | 'pretty'>,
  headers: HttpResponse['headers'] = {},
): HttpResponse {
  if (format === 'yaml') return { status, headers: { ...headers, 'content-type': 'application/yaml' }, body: formatYAML(value) }
  // Upstream writes a final newline only when the output is not pretty-printed.
  return jsonLine(status, headers)(pretty ? writeJSON(value, 2) : objectLine(value))
}

const jsonLine =
  (status: number, headers: HttpResponse['headers']) =>
  (body: Buffer | string): HttpResponse => ({ status, headers: { ...headers, 'content-type': 'application/json' }, body })

/** Encodes an error in the format that the client accepts. */
export function errorResponse(error: StatusError, request: HttpRequest): HttpResponse {
  const format = parseAccept(request.headers.accept)[0]?.type === 'application/yaml' ? 'yaml' : 'json'
  const seconds = error.details?.retryAfterSeconds
  const headers = {
    ...(error.warnings.length === 0 ? {} : { warning: warningHeaders(error.warnings) }),
    ...(seconds === undefined ? {} : { 'retry-after': String(seconds) }),
  }
  if (acceptsOnlyProtobuf(request.headers.accept)) {
    const type = { 'content-type': 'application/vnd.kubernetes.protobuf' }
    return { status: error.code, headers: { ...headers, ...type }, body: encodeStatus(error.status) }
  }
  const query = new URLSearchParams(request.url.split('?', 2)[1])
  return responseOf(error.code, error.status, { format, pretty: wantsPretty(query, request.headers['user-agent']) }, headers)
}

/** Response to a request that is not authorized. Upstream: responsewriters.Forbidden. */
export function forbiddenResponse(error: StatusError, request: HttpRequest): HttpResponse {
  const response = errorResponse(error, request)
  return { ...response, headers: { ...response.headers, 'x-content-type-options': 'nosniff' } }
}

/** Name of the Go type in error texts, such as `*core.ConfigMap` or `*apps.Deployment`. */
const goType = ({ builtin, group, kind }: Resource): string =>
  builtin ? `*${group === '' ? 'core' : group.split('.', 1)[0]}.${kind}` : '*unstructured.Unstructured'

const isStatus = (body: ApiResponse['body']): body is Status =>
  body.kind === 'Status' && body.apiVersion === 'v1' && 'status' in body

/**
 * Encodes a discovery document. `routed` is true for a document that upstream serves through its router, whose errors have other texts.
 * @throws StatusError NotAcceptable
 */
export function encodeDiscovery(value: object, { headers, url }: HttpRequest, { routed }: { routed: boolean }): HttpResponse {
  const { accept, 'user-agent': userAgent } = headers
  const pretty = wantsPretty(new URLSearchParams(url.split('?', 2)[1]), userAgent)
  // Capstan does not encode discovery documents as protobuf: a client that accepts only protobuf gets JSON.
  const representation = representationOf(acceptsOnlyProtobuf(accept) ? undefined : accept, { pretty, builtin: routed })
  if (representation.as !== undefined) throw notAcceptable(accept ?? '', routed)
  return responseOf(200, value, representation)
}

/** Returns a response with code 200 and a value as JSON. */
export const json = (value: object): HttpResponse => jsonText(`${JSON.stringify(value)}\n`)
/** Returns a response with code 200 and a JSON text. */
export const jsonText = (text: string): HttpResponse => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: text,
})
/** Response of upstream's router to unknown paths. */
export const notFoundText = (): HttpResponse => ({
  status: 404,
  headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
  body: '404 page not found\n',
})
