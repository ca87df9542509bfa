import { timestamp } from '@capstan/kube'

interface Condition {
  type: string
  status: string
  reason?: string
  message?: string
  lastTransitionTime?: string
}

/** Sets a condition in the list of a draft, in place. Keeps the transition time while the status stays the same. */
export function setCondition(
  conditions: Condition[],
  { type, status, reason, message }: Required<Omit<Condition, 'lastTransitionTime'>>,
  now: number,
): void {
  const old = conditions.find((condition) => condition.type === type)
  const lastTransitionTime = (old?.status === status ? old.lastTransitionTime : undefined) ?? timestamp(now)
  const next = { type, status, lastTransitionTime, reason, message }
  if (old) Object.assign(old, next)
  else conditions.push(next)
}
