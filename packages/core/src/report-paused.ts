import { type Cluster, ConditionOrder, pausedCondition } from '@capstan/api'
import { commitChanges, type Outcome, type ReconcileContext, wait } from '@capstan/controller'
import { type Condition, draft, type Kind, type KubeObject, setConditions } from '@capstan/kube'

type WithConditions = KubeObject & { status?: { conditions?: Condition[] } }

/** Ends the pass over a paused object: the condition that says so is all that is written. */
export async function reportPaused<T extends WithConditions>(
  { client, clock, signal }: Pick<ReconcileContext, 'client' | 'clock' | 'signal'>,
  kind: Kind<T>,
  before: T,
  cluster: Cluster | undefined,
): Promise<Outcome> {
  const after = draft(before)
  const condition = pausedCondition(cluster, before)
  after.status = {
    ...after.status,
    conditions: setConditions(before.status?.conditions, [condition], {
      now: clock.now(),
      generation: before.metadata.generation,
      order: ConditionOrder,
    }),
  }
  await commitChanges(client, kind, before, after, { conditions: ['Paused'], signal })
  return wait(condition.message)
}
