/** Computes how far a rollout may exceed or fall below the wanted replicas. */
import type { MachineDeployment } from '@capstan/api'
import { invalid, TerminalError } from '@capstan/kube'
import { shareOf } from '../share-of.ts'

/** Limits of a rollout, as numbers of Machines. The name is that of upstream's ResolveFenceposts. */
export interface Fenceposts {
  readonly maxSurge: number
  readonly maxUnavailable: number
}

/**
 * Returns the limits in Machines: percentages are rounded up for maxSurge (default 1), down for maxUnavailable (default 0). When both are 0,
 * maxUnavailable becomes 1: otherwise the rollout could not proceed. maxUnavailable is at most `spec.replicas`. Both are 0 for strategies
 * other than RollingUpdate.
 * @throws TerminalError when a field is neither a number nor a percentage
 */
export function fenceposts({ spec }: MachineDeployment): Fenceposts {
  const { replicas = 0, rollout } = spec
  if (rollout?.strategy?.type !== 'RollingUpdate') return { maxSurge: 0, maxUnavailable: 0 }
  const { maxSurge = 1, maxUnavailable = 0 } = rollout.strategy.rollingUpdate ?? {}
  const surge = limitOf(maxSurge, replicas, Math.ceil, 'maxSurge')
  const unavailable = limitOf(maxUnavailable, replicas, Math.floor, 'maxUnavailable')
  if (replicas === 0) return { maxSurge: surge, maxUnavailable: 0 }
  return { maxSurge: surge, maxUnavailable: Math.min(surge === 0 && unavailable === 0 ? 1 : unavailable, replicas) }
}

/**
 * Returns how many replicas must be available; `undefined` when maxSurge or maxUnavailable is neither a number nor a percentage.
 * `spec.replicas` must be set.
 */
export function leastAvailable(deployment: MachineDeployment): number | undefined {
  try {
    return deployment.spec.replicas! - fenceposts(deployment).maxUnavailable
  } catch {
    return undefined
  }
}

function limitOf(value: number | string, replicas: number, round: (share: number) => number, field: string): number {
  const share = shareOf(value, replicas, round)
  if (share !== undefined) return share
  const error = invalid(`spec.rollout.strategy.rollingUpdate.${field}`, value, 'must be either an int or a percentage')
  throw new TerminalError(`${error.field}: ${error.text}`)
}
