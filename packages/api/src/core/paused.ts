/**
 * Pausing, as every core controller honours it. Upstream writes the `Paused` condition with a patch of its own before anything
 * else; here it is part of the one commit of the pass, which a user cannot distinguish: while paused the pass writes nothing
 * else, and otherwise everything that it writes arrives together.
 * Upstream: util/paused.
 */
import { conditionTypes, type KubeObject, type NewCondition } from '@capstan/kube'
import { PausedAnnotation } from './well-known.ts'

const Paused = conditionTypes({ Paused: ['Paused', 'NotPaused'] }).Paused

/** Fields of a Cluster that determine whether it is paused. */
interface PausableCluster {
  readonly spec: { readonly paused?: boolean }
}

/** True when controllers should leave `object` alone. The Cluster is absent for what belongs to none. */
export const isPaused = (cluster: PausableCluster | undefined, object: KubeObject): boolean =>
  cluster?.spec.paused === true || hasPausedAnnotation(object)

/** The `Paused` condition of `object`, with the reasons why. Pure. */
export function pausedCondition(cluster: PausableCluster | undefined, object: KubeObject): NewCondition {
  const reasons: string[] = []
  if (cluster?.spec.paused) reasons.push('Cluster spec.paused is set to true')
  if (hasPausedAnnotation(object)) reasons.push(`${object.kind} has the ${PausedAnnotation} annotation`)
  return reasons.length > 0 ? Paused.true('Paused', reasons.join(', ')) : Paused.false('NotPaused')
}

export const hasPausedAnnotation = ({ metadata }: KubeObject): boolean => metadata.annotations?.[PausedAnnotation] !== undefined
