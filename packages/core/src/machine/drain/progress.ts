/** Formats the progress of a drain for the Deleting condition. Pure. Upstream: drain.go, EvictionResult, v1.14. */
import { appendAll, compareText, type Pod, shortList } from '@capstan/kube'
import { type DrainPlan, podName } from './plan.ts'

/** A failed eviction and its cause. */
export interface FailedEviction {
  readonly pod: Pod
  readonly message: string
}

/** State of a drain after the evictions of one reconcile. */
export interface DrainResult extends Omit<DrainPlan, 'evict'> {
  readonly failed: readonly FailedEviction[]
}

/** Returns the message of the condition; `undefined` when the drain is complete. */
export function drainProgress(result: DrainResult, startedAt: string): string | undefined {
  const { deleting, failed, completing, evictLater, completeLater } = result
  const lines: string[] = []
  if (deleting.length > 0) lines.push(`* ${podsText(deleting)}: deletionTimestamp set, but still not removed from the Node`)
  appendAll(lines, failureLines(failed))
  if (completing.length > 0) lines.push(`* ${podsText(completing)}: waiting for completion`)
  if (evictLater.length > 0) {
    lines.push(
      `After above Pods have been removed from the Node, the following Pods will be evicted: ${shortList(evictLater.map(podName), MaxPods)}`,
    )
  }
  if (completeLater.length > 0) {
    lines.push(
      `After above Pods have been removed from the Node, waiting for the following Pods to complete without eviction: ${shortList(completeLater.map(podName), MaxPods)}`,
    )
  }
  return lines.length === 0 ? undefined : [`Drain not completed yet (started at ${startedAt}):`, ...lines].join('\n')
}

function failureLines(failed: readonly FailedEviction[]): string[] {
  const byMessage = [...Map.groupBy(failed, ({ message }) => message)].sort(([a], [b]) => compareText(a, b))
  const lines = byMessage
    .slice(0, MaxMessages)
    .map(([message, evictions]) => `* ${podsText(evictions.map(({ pod }) => pod))}: ${failureText(message)}`)
  const otherPods = byMessage.slice(MaxMessages).reduce((count, [, evictions]) => count + evictions.length, 0)
  return otherPods === 0 ? lines : [...lines, `* ${otherPods} ${otherPods === 1 ? 'Pod' : 'Pods'} with other issues`]
}

/** Formats one failure. `drainDelayText` recognizes both forms of the text. */
function failureText(message: string): string {
  const text = message.replaceAll(`Cannot ${BudgetViolated}`, `cannot ${BudgetViolated}`)
  return text.startsWith(`cannot ${BudgetViolated}`) ? text : `failed to evict Pod, ${text}`
}

const BudgetViolated = "evict pod as it would violate the pod's disruption budget."
const MaxMessages = 5
const MaxPods = 3

const podsText = (pods: readonly Pod[]): string =>
  `${pods.length === 1 ? 'Pod' : 'Pods'} ${shortList(pods.map(podName), MaxPods)}`
