/**
 * Pods stay for a while on a node that is not ready or cannot be reached, unless they say for how long.
 * Upstream: plugin/pkg/admission/defaulttolerationseconds.
 */
import type { Pod, Toleration } from '../kinds/schemas/types.ts'
import type { Plugin } from './plugin.ts'

/** In seconds. */
export interface Patience {
  readonly notReady?: number
  readonly unreachable?: number
}

const Usual = 300

export const defaultTolerationSeconds = ({ notReady = Usual, unreachable = Usual }: Patience): Plugin => ({
  name: 'DefaultTolerationSeconds',
  concerns: ({ storage }) => storage === 'pods',
  mutate({ operation, subresource, object }) {
    if (subresource !== undefined || operation === 'DELETE') return
    const { spec } = object as unknown as Pod
    const tolerations = spec.tolerations ?? []
    const added = Object.entries({ 'node.kubernetes.io/not-ready': notReady, 'node.kubernetes.io/unreachable': unreachable })
      .filter(([key]) => !tolerations.some((one) => tolerates(one, key)))
      .map(([key, tolerationSeconds]): Toleration => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }))
    if (added.length > 0) spec.tolerations = [...tolerations, ...added]
  },
})

const tolerates = ({ key = '', effect = '' }: Toleration, taint: string): boolean =>
  (key === taint || key === '') && (effect === 'NoExecute' || effect === '')
