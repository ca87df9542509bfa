/** ConversionReviews, answered by what kinds declare of their other versions. Upstream: controller-runtime pkg/webhook/conversion, v0.24. */
import type { DeclaredKind, KubeObject } from '@capstan/kube'
import { apiVersionOf, messageOf } from '@capstan/kube'

export interface ConversionReview {
  readonly request: {
    readonly uid: string
    readonly desiredAPIVersion: string
    readonly objects: readonly KubeObject[]
  }
}

export function answerConversion(kinds: readonly DeclaredKind[], { request }: ConversionReview): object {
  const { uid, desiredAPIVersion, objects } = request
  const respond = (response: object) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'ConversionReview',
    response: { uid, ...response },
  })
  try {
    const convertedObjects = objects.map((object) => converted(kinds, object, desiredAPIVersion))
    return respond({ convertedObjects, result: { status: 'Success' } })
  } catch (err) {
    return respond({ convertedObjects: [], result: { status: 'Failure', message: messageOf(err) } })
  }
}

/** By way of the version that is stored, as all conversions go. */
function converted(kinds: readonly DeclaredKind[], object: KubeObject, apiVersion: string): KubeObject {
  if (object.apiVersion === apiVersion) return object
  const of = kinds.find(
    (kind) =>
      kind.kind === object.kind &&
      [kind, ...kind.versions.map((one) => one.kind)].some((one) => apiVersionOf(one) === object.apiVersion),
  )
  const from = of?.versions.find(({ kind }) => apiVersionOf(kind) === object.apiVersion)
  const to = of?.versions.find(({ kind }) => apiVersionOf(kind) === apiVersion)
  if (!of || (!to && apiVersionOf(of) !== apiVersion)) {
    throw new Error(`${object.kind} of ${object.apiVersion} cannot be converted to ${apiVersion}`)
  }
  const about = (body: object, version: string) => ({
    ...body,
    apiVersion: version,
    kind: object.kind,
    metadata: object.metadata,
  })
  const stored = from ? about(from.toStored(object), apiVersionOf(of)) : object
  return to ? about(to.fromStored(stored), apiVersion) : stored
}
