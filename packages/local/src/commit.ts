import { ConditionOrder } from '@capstan/api'
import { commitChanges, type ReconcileContext } from '@capstan/controller'
import { type Condition, type Kind, type KubeObject, type NewCondition, setConditions } from '@capstan/kube'

type WithConditions = KubeObject & { status?: { conditions?: Condition[] } }

export interface Reconciled<T> {
  readonly before: T
  /** The changed draft of `before`. */
  readonly after: T
  readonly computed: readonly NewCondition[]
  /** Conditions that this provider owns, by type. */
  readonly owned: { readonly [type: string]: unknown }
}

/** Ends a reconcile: merges its conditions into the draft and writes the differences. */
export async function commit<T extends WithConditions>(
  { client, cache, clock, signal }: ReconcileContext,
  kind: Kind<T>,
  { before, after, computed, owned }: Reconciled<T>,
): Promise<void> {
  const { generation } = before.metadata
  after.status = {
    ...after.status,
    conditions: setConditions(after.status?.conditions, computed, { now: clock.now(), generation, order: ConditionOrder }),
  }
  await commitChanges(client, kind, before, after, { conditions: Object.keys(owned), cache, signal })
}
