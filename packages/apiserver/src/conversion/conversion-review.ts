/**
 * ConversionReview: builds requests and decodes responses. Error texts are those of upstream, except the texts about invalid metadata.
 * Upstream: apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go, v0.36.
 */
import { draft, equal, isRecord, type KubeObject, parseApiVersion, type UnknownObject } from '@capstan/kube'

/**
 * Builds the JSON of the ConversionReview that a webhook receives. `version` is its API version, `v1` or `v1beta1`. The `objects` are
 * already encoded as JSON: the caller encodes them one after the other, with pauses.
 */
export function conversionReview(version: string, uid: string, desiredAPIVersion: string, objects: readonly string[]): string {
  const type = `"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/${version}"`
  const request = `{"uid":"${uid}","desiredAPIVersion":${JSON.stringify(desiredAPIVersion)},"objects":[${objects.join()}]}`
  return `{${type},"request":${request},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}`
}

/**
 * Returns the converted objects of a response. They are neither checked nor frozen.
 *
 * @throws Error for an invalid response, with upstream's text; for a failed conversion, with the message of the response, if any
 */
export function convertedObjects(version: string, uid: string, document: unknown): readonly unknown[] {
  const review = isRecord(document) ? document : {}
  const { apiVersion = '', kind = '', response } = review as { apiVersion?: string; kind?: string; response?: unknown }
  if (apiVersion !== `apiextensions.k8s.io/${version}` || kind !== 'ConversionReview') {
    const received = parseApiVersion(String(apiVersion))
    throw new Error(
      `expected webhook response of apiextensions.k8s.io/${version}, Kind=ConversionReview, got ${received.group}/${received.version}, Kind=${kind}`,
    )
  }
  if (!isRecord(response)) throw new Error('no response provided')
  if (version === 'v1' && response.uid !== uid) {
    const receivedUID = typeof response.uid === 'string' ? response.uid : ''
    throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(receivedUID)}`)
  }
  const result = isRecord(response.result) ? response.result : {}
  const status = typeof result.status === 'string' ? result.status : ''
  if (status !== 'Success') {
    const message = typeof result.message === 'string' ? result.message : ''
    throw new Error(message || `response.result.status was '${status}', not 'Success'`)
  }
  return Array.isArray(response.convertedObjects) ? response.convertedObjects : []
}

/**
 * Returns a converted object with the metadata of the original, except for labels and annotations, which a conversion may change.
 *
 * @throws InvalidConversion when `converted` has another name, namespace, UID or kind than the original, is not in the
 * requested version, or has no metadata or invalid labels or annotations
 */
export function checkedConversion(original: KubeObject, converted: unknown, apiVersion: string): UnknownObject {
  if (!isRecord(converted) || !isRecord(converted.metadata)) throw new InvalidConversion('object', 'it has no metadata')
  const { metadata } = converted
  if (converted.apiVersion !== apiVersion) {
    const received = typeof converted.apiVersion === 'string' ? converted.apiVersion : ''
    throw new InvalidConversion('type', `invalid groupVersion (expected ${apiVersion}, received ${received})`)
  }
  if (converted.kind !== original.kind) {
    const received = typeof converted.kind === 'string' ? converted.kind : ''
    throw new InvalidConversion('type', `invalid kind (expected ${original.kind}, received ${received})`)
  }
  const requireSame = (field: string, before: string | undefined, after: unknown) => {
    if (before === after) return
    throw new InvalidConversion(
      'object',
      `must have the same ${field}: ${before ?? ''} != ${typeof after === 'string' ? after : ''}`,
    )
  }
  // Server-side apply also converts objects with only the fields of one manager, which may include no metadata.
  const originalMetadata: Partial<KubeObject['metadata']> = (original as Partial<KubeObject>).metadata ?? {}
  requireSame('name', originalMetadata.name, metadata.name)
  requireSame('namespace', originalMetadata.namespace, metadata.namespace)
  requireSame('UID', originalMetadata.uid, metadata.uid)
  const keptMetadata = draft(originalMetadata)
  for (const field of ['labels', 'annotations'] as const) {
    const value = metadata[field]
    if (value === undefined || value === null || equal(value, {})) delete keptMetadata[field]
    else if (!isRecord(value) || Object.values(value).some((text) => typeof text !== 'string')) {
      throw new InvalidConversion('metadata', `${field} must be a map of strings`)
    } else keptMetadata[field] = draft(value) as { [key: string]: string }
  }
  return { ...converted, metadata: keptMetadata } as UnknownObject
}

/** Error for a converted object that is invalid. `part` determines the text of the error that the client receives. */
export class InvalidConversion extends Error {
  override readonly name = 'InvalidConversion'
  readonly part: 'type' | 'object' | 'metadata'

  constructor(part: 'type' | 'object' | 'metadata', message: string) {
    super(message)
    this.part = part
  }
}
