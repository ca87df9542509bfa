/** Errors of the HTTP layer, with upstream's texts. */
import { StatusError } from '@capstan/kube'

export const unauthorized = (): StatusError => new StatusError('Unauthorized', 'Unauthorized')

const jsonYAML = ['application/json', 'application/yaml']
const protobuf = 'application/vnd.kubernetes.protobuf'

/** Upstream's list includes protobuf. This server does not encode objects as protobuf, so it omits protobuf for clients that request it. */
export const notAcceptable = (accept: string, builtin: boolean): StatusError => {
  const types = builtin && accept.includes(protobuf) ? jsonYAML : [...jsonYAML, protobuf]
  return new StatusError('NotAcceptable', `only the following media types are accepted: ${types.join(', ')}`)
}

/** Error for an Accept header that no supported format matches. A collection also supports the formats of watches. */
export const notAcceptableAtAll = (collection: boolean): StatusError => {
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
