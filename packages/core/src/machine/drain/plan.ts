/**
 * Which Pods leave a Node now, which later, which never. Pure.
 * Upstream: core/reconcilers/machine/drain, v1.14. MachineDrainRules are not served yet, so every Pod that is to go goes at once.
 */
import { PodDrainLabel } from '@capstan/api'
import { controllerOf, isDeleting, type Pod, seconds } from '@capstan/kube'

export interface DrainInput {
  readonly pods: readonly Pod[]
  /** Whether a DaemonSet, `namespace/name`, exists: without it nothing brings its Pods back. */
  readonly daemonSetExists: (name: string) => boolean
  /** The kubelet does not report: Pods that it should have ended long ago are given up. */
  readonly isNodeUnreachable: boolean
  readonly now: number
}

export interface DrainPlan {
  readonly evict: readonly Pod[]
  /** Already asked to go, and still there. */
  readonly leaving: readonly Pod[]
  /** Will end by themselves, and are waited for. */
  readonly completing: readonly Pod[]
  /** Stay: nothing waits for them. */
  readonly stay: readonly Pod[]
}

type Fate = 'evict' | 'leaving' | 'completing' | 'stay'

export function planDrain(input: DrainInput): DrainPlan {
  const plan: Record<Fate, Pod[]> = { evict: [], leaving: [], completing: [], stay: [] }
  for (const pod of input.pods) plan[fateOf(pod, input)].push(pod)
  return plan
}

function fateOf(pod: Pod, { daemonSetExists, isNodeUnreachable, now }: DrainInput): Fate {
  const deletedAt = pod.metadata.deletionTimestamp
  if (isNodeUnreachable && deletedAt !== undefined && now - Date.parse(deletedAt) > seconds(1)) return 'stay'
  const isFinished = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
  const controller = controllerOf(pod)
  if (controller?.kind === 'DaemonSet' && !isFinished && daemonSetExists(`${pod.metadata.namespace}/${controller.name}`))
    return 'stay'
  if (pod.metadata.annotations?.[MirrorPodAnnotation] !== undefined) return 'stay'
  const wish = pod.metadata.labels?.[PodDrainLabel]?.toLowerCase().replace('-', '')
  if (wish === 'skip') return 'stay'
  if (wish === 'waitcompleted') return 'completing'
  return isDeleting(pod) ? 'leaving' : 'evict'
}

/** Static Pods, which the kubelet runs from its own files. */
const MirrorPodAnnotation = 'kubernetes.io/config.mirror'

/** A Pod that could not be evicted, and why. */
export interface FailedEviction {
  readonly pod: Pod
  readonly message: string
}

/** How far a drain is, in the words of the Deleting condition; `undefined` when it is complete. */
export function drainProgress(
  { leaving, completing }: Pick<DrainPlan, 'leaving' | 'completing'>,
  failed: readonly FailedEviction[],
  startedAt: string,
): string | undefined {
  const lines: string[] = []
  if (leaving.length > 0) lines.push(`* ${podNames(leaving)}: deletionTimestamp set, but still not removed from the Node`)
  const byMessage = Map.groupBy(failed, ({ message }) => message)
  const messages = [...byMessage].sort(([a], [b]) => (a < b ? -1 : 1))
  for (const [message, evictions] of messages.slice(0, MaxMessages)) {
    lines.push(`* ${podNames(evictions.map(({ pod }) => pod))}: ${message}`)
  }
  const others = messages.slice(MaxMessages).reduce((count, [, evictions]) => count + evictions.length, 0)
  if (others > 0) lines.push(`* ${others} ${others === 1 ? 'Pod' : 'Pods'} with other issues`)
  if (completing.length > 0) lines.push(`* ${podNames(completing)}: waiting for completion`)
  return lines.length === 0 ? undefined : [`Drain not completed yet (started at ${startedAt}):`, ...lines].join('\n')
}

const MaxMessages = 5
const MaxNames = 3

function podNames(pods: readonly Pod[]): string {
  const names = pods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).sort()
  const more = names.length - MaxNames
  return `${names.length === 1 ? 'Pod' : 'Pods'} ${names.slice(0, MaxNames).join(', ')}${more > 0 ? `, ... (${more} more)` : ''}`
}
