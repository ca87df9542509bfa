/**
 * Propagates labels and annotations of `machineTemplate.metadata` to Machines, their infrastructure and their bootstrap config without a
 * rollout. An annotation records the propagated keys, so that keys removed from the template are removed from the object, and keys of
 * other writers stay.
 */
import type { KubeObject } from '@capstan/kube'

/** Annotation with the propagated keys: label keys, a semicolon, and annotation keys. The keys are sorted and separated by commas. */
export const PropagatedAnnotation = 'controlplane.capstan.dev/propagated-metadata'

export interface TemplateMetadata {
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
}

/** Returns labels and annotations for a new object, with the annotation that records their keys. */
export function templatedMetadata({ labels = {}, annotations = {} }: TemplateMetadata) {
  const recordedKeys = recordedKeysOf(labels, annotations)
  return {
    labels: { ...labels },
    annotations: { ...annotations, ...(recordedKeys === undefined ? {} : { [PropagatedAnnotation]: recordedKeys }) },
  }
}

/** Sets the labels and annotations of the template in a draft, and removes recorded keys that the template no longer has. */
export function propagateMetadata(object: KubeObject, { labels = {}, annotations = {} }: TemplateMetadata): void {
  const { metadata } = object
  const [oldLabels = '', oldAnnotations = ''] = (metadata.annotations?.[PropagatedAnnotation] ?? '').split(';')
  const recordedKeys = recordedKeysOf(labels, annotations)
  const nextLabels = withPropagated(metadata.labels, oldLabels, labels)
  const nextAnnotations = withPropagated(metadata.annotations, oldAnnotations, annotations)
  if (recordedKeys === undefined) delete nextAnnotations[PropagatedAnnotation]
  else nextAnnotations[PropagatedAnnotation] = recordedKeys
  setUnlessEmpty(metadata, 'labels', nextLabels)
  setUnlessEmpty(metadata, 'annotations', nextAnnotations)
}

function withPropagated(existing: Record<string, string> = {}, propagated: string, templated: Readonly<Record<string, string>>) {
  const next = { ...existing }
  for (const key of propagated.split(',')) if (!Object.hasOwn(templated, key)) delete next[key]
  return Object.assign(next, templated)
}

function recordedKeysOf(labels: object, annotations: object): string | undefined {
  const keys = (map: object) => Object.keys(map).sort().join(',')
  return Object.keys(labels).length + Object.keys(annotations).length === 0 ? undefined : `${keys(labels)};${keys(annotations)}`
}

function setUnlessEmpty<Key extends 'labels' | 'annotations'>(
  metadata: KubeObject['metadata'],
  key: Key,
  value: Record<string, string>,
): void {
  // An existing map becomes empty instead of absent: a patch that removes the map would also remove entries that other writers have just
  // added.
  if (Object.keys(value).length > 0 || metadata[key]) metadata[key] = value
}
