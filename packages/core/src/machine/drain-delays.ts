import type { Machine } from '@capstan/api'
import { getCondition, minutes } from '@capstan/kube'

/**
 * Returns `, delay likely due to …` with the known reasons for which drains have lasted for more than five minutes; `''` if no such drain
 * has a known reason. `now` is in milliseconds since the Unix epoch.
 */
export function drainDelayText(machines: readonly Machine[], now: number): string {
  const messages = machines.flatMap((machine) => drainMessage(machine, now) ?? [])
  const causes = DelayPatterns.filter(([pattern]) => messages.some((message) => message.includes(pattern))).map(
    ([, cause]) => cause,
  )
  return causes.length === 0 ? '' : `, delay likely due to ${causes.join(', ')}`
}

/** Parts of the message of the condition Deleting, each with the cause that users read. */
const DelayPatterns = [
  ["cannot evict pod as it would violate the pod's disruption budget.", 'PodDisruptionBudgets'],
  ['deletionTimestamp set, but still not removed from the Node', 'Pods not terminating'],
  ['failed to evict Pod', 'Pod eviction errors'],
  ['waiting for completion', 'Pods not completed yet'],
] as const

function drainMessage(machine: Machine, now: number): string | undefined {
  const { reason, message } = getCondition(machine, 'Deleting') ?? {}
  const started = Date.parse(machine.status?.deletion?.nodeDrainStartTime ?? '')
  return reason === 'DrainingNode' && now - started > minutes(5) ? message : undefined
}
