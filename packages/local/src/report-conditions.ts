import { type Cluster, ConditionOrder, pausedCondition } from '@capstan/api'
import type { Outcome, ReconcileContext } from '@capstan/controller'
import { type Condition, type KubeObject, type NewCondition, setConditions } from '@capstan/kube'

type WithConditions = KubeObject & { status?: { conditions?: Condition[] } }

/** Result of a phase of this provider: the outcome of the reconcile, and the conditions to report. */
export interface PhaseReport {
  readonly outcome: Outcome
  readonly conditions: readonly NewCondition[]
}

/** Returns the parts of the status that other controllers act on: all fields except `conditions`, and the types of the True conditions. */
export function significantFields({ status }: WithConditions): unknown {
  const { conditions = [], ...facts } = status ?? {}
  return { ...facts, true: conditions.filter((condition) => condition.status === 'True').map(({ type }) => type) }
}

/** Writes conditions, including Paused, to the draft of an object. */
export function reportConditions(
  object: WithConditions,
  computed: readonly NewCondition[],
  cluster: Cluster | undefined,
  { clock }: Pick<ReconcileContext, 'clock'>,
): void {
  const { generation } = object.metadata
  const options = { now: clock.now(), generation, order: ConditionOrder }
  const conditions = setConditions(object.status?.conditions, [...computed, pausedCondition(cluster, object)], options)
  object.status = { ...object.status, conditions }
}
