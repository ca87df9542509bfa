import { ConditionOrder } from '@capstan/api'
import { commitChanges, type Outcome, postponeStatus, type ReconcileContext } from '@capstan/controller'
import { type Condition, type Kind, type KubeObject, type NewCondition, setConditions } from '@capstan/kube'
import { significantFields } from './report-conditions.ts'

type WithConditions = KubeObject & { status?: { conditions?: Condition[] } }

export interface Reconciled<T> {
  readonly before: T
  /** The changed draft of `before`. */
  readonly after: T
  readonly computed: readonly NewCondition[]
  /** Conditions that this provider owns, by type. */
  readonly owned: { readonly [type: string]: unknown }
}

/**
 * Ends a reconcile: merges its conditions into the draft and writes the differences. Returns a requeue for differences that it postpones.
 */
export async function commit<T extends WithConditions>(
  io: ReconcileContext,
  kind: Kind<T>,
  { before, after, computed, owned }: Reconciled<T>,
): Promise<Outcome> {
  const { client, cache, clock, signal } = io
  const { generation } = before.metadata
  after.status = {
    ...after.status,
    conditions: setConditions(after.status?.conditions, computed, { now: clock.now(), generation, order: ConditionOrder }),
  }
  const outcome = postponeStatus(io, before, after, significantFields)
  await commitChanges(client, kind, before, after, { conditions: Object.keys(owned), cache, signal })
  return outcome
}
