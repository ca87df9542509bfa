/**
 * Adds the taint `node.kubernetes.io/not-ready` to new nodes, so that only pods that tolerate it are scheduled to them before they are
 * ready. Upstream:
 * plugin/pkg/admission/nodetaint.
 */
import type { Node } from '../kinds/schemas/types.ts'
import type { Plugin } from '@capstan/apiserver/kinds'

const NotReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }

export const taintNodesByCondition: Plugin = {
  name: 'TaintNodesByCondition',
  appliesTo: ({ storage }) => storage === 'nodes',
  mutate({ operation, subresource, object }) {
    if (operation !== 'CREATE' || subresource !== undefined) return
    const { spec } = object as unknown as Node
    const taints = spec.taints ?? []
    const hasTaint = taints.some(({ key, effect }) => key === NotReady.key && effect === NotReady.effect)
    if (!hasTaint) spec.taints = [...taints, { ...NotReady }]
  },
}
