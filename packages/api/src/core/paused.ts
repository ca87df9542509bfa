/**
 * Determines whether objects are paused, for the controllers of core and of providers. Upstream writes the `Paused` condition with a
 * separate patch at the start of a reconcile; here a reconcile writes it with its other changes of the status. While an object is paused,
 * `reconcileObject` of `@capstan/controller` writes only this condition and the finalizer.
 * Upstream: util/paused.
 */
import { conditionTypes, type KubeObject, type NewCondition } from '@capstan/kube'
import { PausedAnnotation } from './well-known.ts'

const Paused = conditionTypes({ Paused: ['Paused', 'NotPaused'] }).Paused

/** Fields of a Cluster that determine whether it is paused. */
interface PausableCluster {
  readonly spec: { readonly paused?: boolean }
}

/** Whether controllers must not reconcile `object`. `cluster` is `undefined` for objects without a Cluster. */
export const isPaused = (cluster: PausableCluster | undefined, object: KubeObject): boolean =>
  cluster?.spec.paused === true || hasPausedAnnotation(object)

/** Returns the `Paused` condition of `object`; its message names the causes. Pure. */
export function pausedCondition(cluster: PausableCluster | undefined, object: KubeObject): NewCondition {
  const reasons: string[] = []
  if (cluster?.spec.paused) reasons.push('Cluster spec.paused is set to true')
  if (hasPausedAnnotation(object)) reasons.push(`${object.kind} has the ${PausedAnnotation} annotation`)
  return reasons.length > 0 ? Paused.true('Paused', reasons.join(', ')) : Paused.false('NotPaused')
}

export const hasPausedAnnotation = ({ metadata }: KubeObject): boolean => metadata.annotations?.[PausedAnnotation] !== undefined
