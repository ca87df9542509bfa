/**
 * Decides from a PodDisruptionBudget whether a pod may be evicted. Upstream: pkg/registry/core/pod/storage/eviction.go,
 * v1.36.
 */
import { StatusError } from '@capstan/kube'
import type { Condition, Pod, PodDisruptionBudget, PodDisruptionBudgetStatus } from '../kinds/schemas/types.ts'

/** Limit of evictions in a status that the controller has not confirmed. Beyond this limit, further evictions are rejected. */
const MaxDisruptedPods = 2000

/** Reports whether a budget may limit the eviction of a pod: not if the pod is being deleted, has finished or has not started. */
export const needsBudget = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined && !['Succeeded', 'Failed', 'Pending'].includes(status.phase ?? '')

export const isReady = ({ status }: Pod): boolean =>
  status.conditions?.some(({ type, status: conditionStatus }) => type === 'Ready' && conditionStatus === 'True') === true

/** Reports whether pods that are not ready may be evicted without being counted in the budget. */
export const allowsUnreadyEviction = ({ spec, status }: PodDisruptionBudget): boolean =>
  spec.unhealthyPodEvictionPolicy === 'AlwaysAllow' ||
  (status.currentHealthy >= status.desiredHealthy && status.desiredHealthy > 0)

/**
 * Counts the eviction of a pod in the status of its budget. The budget must be a draft, which this function changes.
 * @throws StatusError TooManyRequests when the budget allows no more disruptions, or its controller has not observed the latest spec;
 * Forbidden when `disruptionsAllowed` is negative, or too many evictions are not confirmed
 */
export function countDisruption({ metadata, status }: PodDisruptionBudget, pod: string, now: string): void {
  const { name, generation = 0 } = metadata
  if ((status.observedGeneration ?? 0) < generation) throw budgetNotObserved(name)
  if (status.disruptionsAllowed < 0) throw rejected(name, 'pdb disruptions allowed is negative')
  if (Object.keys(status.disruptedPods ?? {}).length > MaxDisruptedPods) {
    throw rejected(name, 'DisruptedPods map too big - too many evictions not confirmed by PDB controller')
  }
  if (status.disruptionsAllowed === 0) throw tooMany(denialText(name, status))
  status.disruptionsAllowed--
  if (status.disruptionsAllowed === 0) status.conditions = withoutDisruptions(status, now)
  status.disruptedPods = { ...status.disruptedPods, [pod]: now }
}

/**
 * Error while the controller has not observed the latest spec of the budget, or when a pod that is not ready changed during its eviction.
 * The client must retry.
 */
export const budgetNotObserved = (name: string): StatusError =>
  tooMany(`The disruption budget ${name} is still being processed by the server.`, 10)

function denialText(name: string, { conditions = [], currentHealthy, desiredHealthy }: PodDisruptionBudgetStatus): string {
  const condition = conditions.find(({ type, status, message }) => type === Allowed && status === 'False' && message !== '')
  const text = `The disruption budget ${name} does not allow evicting pods currently`
  if (condition?.reason === 'SyncFailed') return `${text} because it failed sync: ${condition.message}`
  if (currentHealthy <= desiredHealthy) {
    return `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`
  }
  return condition ? `${text} (${condition.reason}): ${condition.message}` : text
}

const Allowed = 'DisruptionAllowed'

function withoutDisruptions({ conditions = [], observedGeneration = 0 }: PodDisruptionBudgetStatus, now: string): Condition[] {
  const old = conditions.find(({ type }) => type === Allowed)
  const lastTransitionTime = old?.status === 'False' ? old.lastTransitionTime : now
  const condition: Condition = {
    type: Allowed,
    status: 'False',
    observedGeneration,
    lastTransitionTime,
    reason: 'InsufficientPods',
    message: '',
  }
  return old ? conditions.map((existing) => (existing === old ? condition : existing)) : [...conditions, condition]
}

const tooMany = (message: string, retryAfterSeconds?: number): StatusError =>
  new StatusError('TooManyRequests', "Cannot evict pod as it would violate the pod's disruption budget.", {
    details: {
      causes: [{ reason: 'DisruptionBudget', message }],
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    },
  })

const rejected = (name: string, problem: string): StatusError =>
  new StatusError('Forbidden', `poddisruptionbudget.policy ${JSON.stringify(name)} is forbidden: ${problem}`, {
    details: { name, group: 'policy', kind: 'poddisruptionbudget' },
  })
