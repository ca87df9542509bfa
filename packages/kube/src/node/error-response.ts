import type { ApiRequest } from '../client.ts'
import type { Status, StatusReason } from '../errors.ts'
import { StatusError } from '../errors.ts'
import { isRecord } from '../json.ts'

/** Returns the error of a failed response: the Status in its body or, without a Status (such as from a proxy), an error for the HTTP code. */
export function errorOfResponse(request: ApiRequest, code: number, body: Buffer): StatusError {
  const status = parseStatus(body)
  if (status) return StatusError.from({ ...status, code: status.code ?? code })
  const { verb, group, plural, name } = request
  const [reason, message] = genericErrors[code] ?? [
    code >= 500 ? 'InternalError' : '',
    `an error on the server (${JSON.stringify(body.subarray(0, 256).toString('utf8').trim() || 'unknown')}) has prevented the request from succeeding`,
  ]
  const resource = group === '' ? plural : `${plural}.${group}`
  return new StatusError(
    code === 409 && verb === 'create' ? 'AlreadyExists' : reason,
    `${message} (${[verb, resource, name].filter(Boolean).join(' ')})`,
    { code, details: { ...(name === undefined ? {} : { name }), ...(group === '' ? {} : { group }), kind: plural } },
  )
}

function parseStatus(body: Buffer): Status | undefined {
  const startsWithBrace = body[0] === 0x7b
  if (!startsWithBrace) return undefined
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return isRecord(value) && value.kind === 'Status' ? (value as unknown as Status) : undefined
  } catch {
    return undefined
  }
}

/**
 * Reason and message by HTTP code. Upstream: k8s.io/apimachinery/pkg/api/errors, NewGenericServerResponse, which has no entry for 413, and
 * for 403, 406 and 415 uses the text of the response if there is one.
 */
const genericErrors: { readonly [code: number]: readonly [StatusReason, string] } = {
  400: ['BadRequest', 'the server rejected our request for an unknown reason'],
  401: ['Unauthorized', 'the server has asked for the client to provide credentials'],
  403: ['Forbidden', 'the server does not allow access to the requested resource'],
  404: ['NotFound', 'the server could not find the requested resource'],
  405: ['MethodNotAllowed', 'the server does not allow this method on the requested resource'],
  406: ['NotAcceptable', 'the server was unable to respond with a content type that the client supports'],
  409: ['Conflict', 'the server reported a conflict'],
  413: ['RequestEntityTooLarge', 'the request is too large'],
  415: ['UnsupportedMediaType', 'the server was unable to respond with a content type that the client supports'],
  422: ['Invalid', 'the server rejected our request due to an error in our request'],
  429: ['TooManyRequests', 'the server has received too many requests and has asked us to try again later'],
  503: ['ServiceUnavailable', 'the server is currently unable to handle the request'],
  504: ['Timeout', 'the server was unable to return a response in the time allotted, but may still be processing the request'],
}
