import type { KubeObject, ListMeta, ObjectList } from '@capstan/kube'

type Version = 'v1' | 'v1beta1'

export interface PartialObjectMetadata extends KubeObject {
  readonly kind: 'PartialObjectMetadata'
}

/** Returns the metadata of an object as PartialObjectMetadata. The result is cached by object, so that requests share its encoded bytes. */
export function partialMetadata(object: KubeObject, version: Version): PartialObjectMetadata {
  const cache = caches[version]
  let partial = cache.get(object)
  if (!partial) {
    partial = Object.freeze({
      kind: 'PartialObjectMetadata',
      apiVersion: `meta.k8s.io/${version}`,
      metadata: object.metadata,
    } as const)
    cache.set(object, partial)
  }
  return partial
}

/** Returns the metadata of a list and of its objects as PartialObjectMetadataList. As upstream, `items` of an empty list is null. */
export const partialMetadataList = (list: ObjectList, version: Version): object => ({
  kind: 'PartialObjectMetadataList',
  apiVersion: `meta.k8s.io/${version}`,
  metadata: withoutEmptyContinue(list.metadata),
  items: list.items.length === 0 ? null : list.items.map((item) => partialMetadata(item, version)),
})

/** Omits an empty continue token, which only lists of custom resources contain. */
export const withoutEmptyContinue = ({ continue: token, ...otherFields }: ListMeta): ListMeta =>
  token ? { ...otherFields, continue: token } : otherFields

const caches = { v1: new WeakMap<KubeObject, PartialObjectMetadata>(), v1beta1: new WeakMap<KubeObject, PartialObjectMetadata>() }
