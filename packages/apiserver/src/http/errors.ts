/** Errors of the HTTP layer. The texts are upstream's, except that of `tooManyObjects`: upstream has no such limit. */
import { MaxObjects, StatusError } from '@capstan/kube'

export const unauthorized = (): StatusError => new StatusError('Unauthorized', 'Unauthorized')

const jsonYAML = ['application/json', 'application/yaml']
const protobuf = 'application/vnd.kubernetes.protobuf'

/**
 * Error for an Accept header without a media type that the handler can send, with upstream's list of media types. Upstream
 * sends built-in kinds as protobuf, and this server does not: the list omits protobuf if a client requests it for such a kind.
 */
export const notAcceptable = (accept: string, builtin: boolean): StatusError => {
  const types = builtin && accept.includes(protobuf) ? jsonYAML : [...jsonYAML, protobuf]
  return new StatusError('NotAcceptable', `only the following media types are accepted: ${types.join(', ')}`)
}

/**
 * Error for an Accept header with unknown media types only, which upstream's router rejects before its handlers run. A collection also
 * supports the formats of watches.
 */
export const unknownMediaTypes = (collection: boolean): StatusError => {
  const types = [...jsonYAML, protobuf, ...(collection ? ['application/json;stream=watch', `${protobuf};stream=watch`] : [])]
  return new StatusError('NotAcceptable', `406: Not Acceptable\n\nAvailable representations: ${types.join(', ')}`, {
    details: {},
  })
}

export const watchNotAcceptable = (): StatusError =>
  new StatusError(
    'NotAcceptable',
    `only the following media types are accepted: application/json;stream=watch, ${protobuf};stream=watch`,
  )

/**
 * Error for a body of an unsupported media type. Upstream does not accept protobuf for custom resources: the list omits
 * protobuf if the client sends it.
 */
export const unsupportedBody = (contentType: string): StatusError => {
  const types = contentType.includes(protobuf) ? jsonYAML : [...jsonYAML, protobuf]
  return unsupportedMediaType(types)
}

export const unsupportedMediaType = (accepted: readonly string[]): StatusError =>
  new StatusError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  )

export const tooLarge = (limit: number): StatusError =>
  new StatusError('RequestEntityTooLarge', `Request entity too large: limit is ${limit}`)

/** Error for a body with more objects and lists than `MaxObjects`. */
export const tooManyObjects = (): StatusError =>
  new StatusError(
    'RequestEntityTooLarge',
    `Request entity too large: The allowed maximum of objects and lists in a body is ${MaxObjects}`,
  )
