/** How far a rollout may go above and below the wanted replicas. */
import type { MachineDeployment } from '@capstan/api'
import { invalid, TerminalError } from '@capstan/kube'

export interface Fenceposts {
  readonly maxSurge: number
  readonly maxUnavailable: number
}

/**
 * The limits in Machines: a share of replicas is rounded up for the surge, down for what may be unavailable. When both come to
 * nothing, one may be unavailable: otherwise nothing could ever move.
 *
 * @throws TerminalError when a field is neither a number nor a percentage
 */
export function fenceposts({ spec }: MachineDeployment): Fenceposts {
  const { replicas = 0, rollout } = spec
  if (rollout?.strategy?.type !== 'RollingUpdate') return { maxSurge: 0, maxUnavailable: 0 }
  const { maxSurge = 1, maxUnavailable = 0 } = rollout.strategy.rollingUpdate ?? {}
  const surge = scaled(maxSurge, replicas, Math.ceil, 'maxSurge')
  const unavailable = scaled(maxUnavailable, replicas, Math.floor, 'maxUnavailable')
  if (replicas === 0) return { maxSurge: surge, maxUnavailable: 0 }
  return { maxSurge: surge, maxUnavailable: Math.min(surge === 0 && unavailable === 0 ? 1 : unavailable, replicas) }
}

/** How many replicas must be available. `undefined` when the limits of the rollout make no sense; the pass has failed for the same reason. */
export function leastAvailable(deployment: MachineDeployment): number | undefined {
  try {
    return deployment.spec.replicas! - fenceposts(deployment).maxUnavailable
  } catch {
    return undefined
  }
}

function scaled(value: number | string, of: number, round: (share: number) => number, field: string): number {
  if (typeof value === 'number') return value
  const percent = /^(\d+)%$/.exec(value)?.[1]
  if (percent !== undefined) return round((Number(percent) * of) / 100)
  const error = invalid(`spec.rollout.strategy.rollingUpdate.${field}`, value, 'must be either an int or a percentage')
  throw new TerminalError(`${error.field}: ${error.text}`)
}
