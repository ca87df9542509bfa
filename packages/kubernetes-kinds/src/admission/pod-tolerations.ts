/**
 * Adds two tolerations of limited duration, for nodes that are not ready and for unreachable nodes, each unless the pod already has a
 * toleration for the key and effect of the taint. Upstream: plugin/pkg/admission/defaulttolerationseconds.
 */
import type { Pod, Toleration } from '../kinds/schemas/types.ts'
import type { Plugin } from '@capstan/apiserver/kinds'

/** Values of `tolerationSeconds` in the added tolerations; default: 300 each. */
export interface TolerationSeconds {
  readonly notReady?: number
  readonly unreachable?: number
}

const DefaultSeconds = 300

export const defaultTolerationSeconds = ({
  notReady = DefaultSeconds,
  unreachable = DefaultSeconds,
}: TolerationSeconds): Plugin => ({
  name: 'DefaultTolerationSeconds',
  appliesTo: ({ storage }) => storage === 'pods',
  mutate({ operation, subresource, object }) {
    if (subresource !== undefined || operation === 'DELETE') return
    const { spec } = object as unknown as Pod
    const tolerations = spec.tolerations ?? []
    const added = Object.entries({ 'node.kubernetes.io/not-ready': notReady, 'node.kubernetes.io/unreachable': unreachable })
      .filter(([key]) => !tolerations.some((toleration) => tolerates(toleration, key)))
      .map(([key, tolerationSeconds]): Toleration => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }))
    if (added.length > 0) spec.tolerations = [...tolerations, ...added]
  },
})

const tolerates = ({ key = '', effect = '' }: Toleration, taint: string): boolean =>
  (key === taint || key === '') && (effect === 'NoExecute' || effect === '')
