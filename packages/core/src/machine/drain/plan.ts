/** Decides which Pods of a Node are evicted now, which later, and which never. Pure. Upstream: core/reconcilers/machine/drain, v1.14. */
import { type MachineDrainRule, PodDrainLabel } from '@capstan/api'
import { compareText, controllerOf, isDeleting, keyOf, keyText, type Labels, type Pod, seconds, smallest } from '@capstan/kube'
import { ruleForPod } from './rules.ts'

export interface PodsInput {
  readonly pods: readonly Pod[]
  /** Rules that apply to the Machine, sorted by name. */
  readonly rules: readonly MachineDrainRule[]
  /** Labels of a namespace; `undefined` when the namespace does not exist. */
  readonly namespaceLabels: (namespace: string) => Labels | undefined
  /** Whether a DaemonSet, `namespace/name`, exists. Pods of a missing DaemonSet are treated like other Pods. */
  readonly daemonSetExists: (name: string) => boolean
  /** Whether the kubelet stopped reporting. Pods that it should have ended by now are then skipped. */
  readonly isNodeUnreachable: boolean
  /** Milliseconds since the Unix epoch. */
  readonly now: number
}

/** Drain behavior for one Pod. Pods with a lower order are drained first. */
export type PodDrain = { readonly pod: Pod } & (
  | { readonly behavior: 'Drain' | 'WaitCompleted'; readonly order: number }
  | { readonly behavior: 'Skip' }
)

/**
 * Returns the drain behavior of each Pod, sorted by namespace and name.
 *
 * @throws Error when rules must decide about a Pod whose namespace does not exist
 */
export function classifyPods(input: PodsInput): PodDrain[] {
  const podDrains: PodDrain[] = []
  const withoutNamespace: string[] = []
  for (const pod of [...input.pods].sort((a, b) => compareText(podName(a), podName(b)))) {
    const podDrain = classify(pod, input)
    if (podDrain) podDrains.push(podDrain)
    else withoutNamespace.push(podName(pod))
  }
  if (withoutNamespace.length > 0)
    throw new Error(`Pods with error "Pod Namespace does not exist": ${withoutNamespace.join(', ')}`)
  return podDrains
}

/** Classifies one Pod; `undefined` when rules must decide and the namespace of the Pod does not exist. */
function classify(pod: Pod, input: PodsInput): PodDrain | undefined {
  const { daemonSetExists, isNodeUnreachable, now, rules, namespaceLabels } = input
  const deletedAt = pod.metadata.deletionTimestamp
  if (isNodeUnreachable && deletedAt !== undefined && wholeSeconds(now - Date.parse(deletedAt)) > 1) return skip(pod)
  const isFinished = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
  const controller = controllerOf(pod)
  if (controller?.kind === 'DaemonSet' && !isFinished && daemonSetExists(`${pod.metadata.namespace}/${controller.name}`))
    return skip(pod)
  if (pod.metadata.annotations?.[MirrorPodAnnotation] !== undefined) return skip(pod)
  const label = pod.metadata.labels?.[PodDrainLabel]?.toLowerCase()
  if (label === 'skip') return skip(pod)
  if (label?.replace('-', '') === 'waitcompleted') return { pod, behavior: 'WaitCompleted', order: 0 }

  const labelsOfNamespace = namespaceLabels(pod.metadata.namespace!)
  if (!labelsOfNamespace) return undefined
  const { behavior = 'Drain', order = 0 } = ruleForPod(rules, pod, labelsOfNamespace)?.spec.drain ?? {}
  return behavior === 'Skip' ? skip(pod) : { pod, behavior, order: behavior === 'Drain' ? order : 0 }
}

const skip = (pod: Pod): PodDrain => ({ pod, behavior: 'Skip' })
const wholeSeconds = (ms: number): number => Math.trunc(ms / seconds(1))

/** Annotation of mirror Pods, which a kubelet creates for its static Pods. */
const MirrorPodAnnotation = 'kubernetes.io/config.mirror'

export interface DrainPlan {
  readonly evict: readonly Pod[]
  /** Pods that are evicted once all Pods of a lower order are gone. */
  readonly evictLater: readonly Pod[]
  /** Pods with the behavior Drain that have a deletionTimestamp and still exist. */
  readonly deleting: readonly Pod[]
  /** Pods that are never evicted: the drain waits for their completion. */
  readonly completing: readonly Pod[]
  /** Pods that are never evicted, and whose completion the drain awaits once all Pods of a lower order are gone. */
  readonly completeLater: readonly Pod[]
}

/**
 * Selects the Pods of the lowest order to be evicted or awaited now, and Pods of a higher order for later. Pods with the behavior Drain and a
 * deletionTimestamp are in `deleting`, in every order. Pods with the behavior Skip are left out.
 */
export function planDrain(podDrains: readonly PodDrain[]): DrainPlan {
  const waitedFor = podDrains.filter((podDrain) => podDrain.behavior !== 'Skip')
  const lowest = smallest(waitedFor.map(({ order }) => order))
  const plan: { [List in keyof DrainPlan]: Pod[] } = {
    evict: [],
    evictLater: [],
    deleting: [],
    completing: [],
    completeLater: [],
  }
  for (const { pod, behavior, order } of waitedFor) {
    const isLowest = order === lowest
    if (behavior === 'WaitCompleted') plan[isLowest ? 'completing' : 'completeLater'].push(pod)
    else if (isDeleting(pod)) plan.deleting.push(pod)
    else plan[isLowest ? 'evict' : 'evictLater'].push(pod)
  }
  return plan
}

export const podName = (pod: Pod): string => keyText(keyOf(pod))
