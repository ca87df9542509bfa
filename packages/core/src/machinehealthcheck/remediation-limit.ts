/** Determines whether a MachineHealthCheck may remediate Machines. Pure. Upstream: isAllowedRemediation, v1.14. */
import type { MachineHealthCheck } from '@capstan/api'
import { TerminalError } from '@capstan/kube'
import { shareOf } from '../share-of.ts'

/** Numbers of Machines by the result of their check. */
export interface MachineTotals {
  /** Machines that are checked. */
  readonly expected: number
  readonly healthy: number
  /** Machines that failed a check. For the limit, all Machines that are not healthy count, also those of pending or unknown health. */
  readonly unhealthy: number
}

/** Whether remediation is allowed. */
export type RemediationLimit =
  /** `remaining` is the number of further Machines that may become unhealthy before remediation is no longer allowed. */
  { readonly allowed: true; readonly remaining: number } | { readonly allowed: false; readonly message: string }

const AllMachines = '100%'

/**
 * Returns whether `spec.remediation.triggerIf` allows remediation. Without this field, remediation is always allowed.
 * @throws TerminalError when spec.remediation.triggerIf cannot be evaluated
 */
export function remediationLimit({ spec }: MachineHealthCheck, totals: MachineTotals): RemediationLimit {
  const { unhealthyInRange, unhealthyLessThanOrEqualTo = AllMachines } = spec.remediation?.triggerIf ?? {}
  const notHealthy = totals.expected - totals.healthy
  const subject = 'Remediation is not allowed, the number of not started or unhealthy machines'
  const counts = `total: ${totals.expected}, unhealthy: ${totals.unhealthy}`
  if (unhealthyInRange) {
    const { min, max } = rangeOf(unhealthyInRange)
    if (notHealthy >= min && notHealthy <= max) return { allowed: true, remaining: max - notHealthy }
    return {
      allowed: false,
      message: `${subject} does not fall within the range (${counts}, unhealthyRange: ${unhealthyInRange})`,
    }
  }
  const limit = shareOf(unhealthyLessThanOrEqualTo, totals.expected, Math.floor)
  if (limit === undefined) {
    const text = JSON.stringify(unhealthyLessThanOrEqualTo)
    throw new TerminalError(`spec.remediation.triggerIf.unhealthyLessThanOrEqualTo: ${text} is neither a number nor a percentage`)
  }
  if (notHealthy <= limit) return { allowed: true, remaining: limit - notHealthy }
  return { allowed: false, message: `${subject} exceeds maxUnhealthy (${counts}, maxUnhealthy: ${unhealthyLessThanOrEqualTo})` }
}

const LargestUint32 = 2 ** 32 - 1

/** Parses a range such as `[2-5]`. The schema guarantees this form. */
function rangeOf(text: string): { min: number; max: number } {
  const [min = 0, max = 0] = text.slice(1, -1).split('-').map(Number)
  const field = 'spec.remediation.triggerIf.unhealthyInRange'
  if (max > LargestUint32) throw new TerminalError(`${field}: ${text} has a number above ${LargestUint32}`)
  if (max < min) throw new TerminalError(`max value ${max} cannot be less than min value ${min} for unhealthyRange`)
  return { min, max }
}
