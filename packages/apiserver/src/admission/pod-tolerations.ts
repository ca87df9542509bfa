/**
 * Pods stay for five minutes on a node that is not ready or cannot be reached, unless they say otherwise.
 * Upstream: plugin/pkg/admission/defaulttolerationseconds.
 */
import type { Pod, Toleration } from '../kinds/schemas/types.ts'
import type { Plugin } from './plugin.ts'

const Patience = 300

export const defaultTolerationSeconds: Plugin = {
  name: 'DefaultTolerationSeconds',
  concerns: ({ storage }) => storage === 'pods',
  mutate({ operation, subresource, object }) {
    if (subresource !== undefined || operation === 'DELETE') return
    const { spec } = object as unknown as Pod
    const tolerations = spec.tolerations ?? []
    const added = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']
      .filter((key) => !tolerations.some((one) => tolerates(one, key)))
      .map((key): Toleration => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: Patience }))
    if (added.length > 0) spec.tolerations = [...tolerations, ...added]
  },
}

const tolerates = ({ key = '', effect = '' }: Toleration, taint: string): boolean =>
  (key === taint || key === '') && (effect === 'NoExecute' || effect === '')
