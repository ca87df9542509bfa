/**
 * Sets the default class of new Ingresses and PersistentVolumeClaims that name no class; of several default classes, the
 * newest. Upstream: defaultingressclass and storageclass/setdefault below plugin/pkg/admission, v1.36.
 */
import { isRecord, type KubeObject } from '@capstan/kube'
import type { Store, Plugin } from '@capstan/apiserver/kinds'

export const defaultIngressClass = defaultClass({
  name: 'DefaultIngressClass',
  storage: 'ingresses.networking.k8s.io',
  field: 'ingressClassName',
  oldAnnotation: 'kubernetes.io/ingress.class',
  classes: 'ingressclasses.networking.k8s.io',
  marks: ['ingressclass.kubernetes.io/is-default-class'],
})

export const defaultStorageClass = defaultClass({
  name: 'DefaultStorageClass',
  storage: 'persistentvolumeclaims',
  field: 'storageClassName',
  oldAnnotation: 'volume.beta.kubernetes.io/storage-class',
  classes: 'storageclasses.storage.k8s.io',
  marks: ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class'],
})

interface DefaultClassOptions {
  readonly name: Plugin['name']
  /** Resource whose new objects get the default class: `plural.group`, or `plural` in the core group. */
  readonly storage: string
  /** Field of `spec` that names the class. */
  readonly field: string
  /** Annotation that named the class before the field existed. */
  readonly oldAnnotation: string
  /** Resource of the classes, `plural.group`. */
  readonly classes: string
  /** Annotations whose value `true` marks a class as the default. */
  readonly marks: readonly string[]
}

function defaultClass({ name, storage, field, oldAnnotation, classes, marks }: DefaultClassOptions): Plugin {
  return {
    name,
    appliesTo: (info) => info.storage === storage,
    mutate({ operation, subresource, object, store }) {
      const { metadata, spec } = object
      if (operation !== 'CREATE' || subresource !== undefined || !isRecord(spec)) return
      if (spec[field] !== undefined || metadata.annotations?.[oldAnnotation] !== undefined) return
      const newest = newestDefault(store, classes, marks)
      if (newest) spec[field] = newest.metadata.name
    },
  }
}

function newestDefault(store: Store, classes: string, marks: readonly string[]): KubeObject | undefined {
  const isDefault = ({ metadata }: KubeObject) => marks.some((mark) => metadata.annotations?.[mark] === 'true')
  return store.list(classes, undefined).filter(isDefault).toSorted(newestFirst)[0]
}

function newestFirst({ metadata: a }: KubeObject, { metadata: b }: KubeObject): number {
  if (a.creationTimestamp === b.creationTimestamp) return a.name < b.name ? -1 : 1
  return a.creationTimestamp! > b.creationTimestamp! ? -1 : 1
}
