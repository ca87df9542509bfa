import type { Kind, KubeObject } from '@capstan/kube'
import type { Index } from './controller.ts'

/** Declares an index of the objects of a namespaced kind by the value of a label. Values of the index have the form `namespace/value`. */
export const indexByLabel = <T extends KubeObject>(kind: Kind<T>, label: string): Index<T> => ({
  name: `${kind.plural} by label ${label}`,
  kind,
  values({ metadata }) {
    const value = metadata.labels?.[label]
    return value === undefined ? [] : [`${metadata.namespace}/${value}`]
  },
})
