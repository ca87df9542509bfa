/** An Ingress that names no class gets the default one, if there is one. Upstream: plugin/pkg/admission/network/defaultingressclass. */
import { isRecord, type KubeObject } from '@capstan/kube'
import type { Plugin } from './plugin.ts'

const isDefault = 'ingressclass.kubernetes.io/is-default-class'
const oldClassName = 'kubernetes.io/ingress.class'

export const defaultIngressClass: Plugin = {
  name: 'DefaultIngressClass',
  concerns: ({ storage }) => storage === 'ingresses.networking.k8s.io',
  mutate({ operation, subresource, object, store }) {
    const { metadata, spec } = object
    if (operation !== 'CREATE' || subresource !== undefined || !isRecord(spec)) return
    if (spec.ingressClassName !== undefined || metadata.annotations?.[oldClassName] !== undefined) return
    const [newest] = store
      .list('ingressclasses.networking.k8s.io', undefined)
      .filter((one) => one.metadata.annotations?.[isDefault] === 'true')
      .toSorted(newestFirst)
    if (newest) spec.ingressClassName = newest.metadata.name
  },
}

function newestFirst({ metadata: a }: KubeObject, { metadata: b }: KubeObject): number {
  if (a.creationTimestamp === b.creationTimestamp) return a.name < b.name ? -1 : 1
  return a.creationTimestamp! > b.creationTimestamp! ? -1 : 1
}
