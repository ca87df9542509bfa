import { Cluster } from '@capstan/api'
import { commitChanges, controller, type Outcome, proceed, type ReconcileContext, requeue } from '@capstan/controller'
import { draft, isDeleting, minutes, type NewCondition, type ObjectKey, orAbsent, setConditions } from '@capstan/kube'
import { Lifetime, LifetimeConditions } from './lifetime.ts'

export const lifetimeController = controller({ name: 'lifetime', for: Lifetime, reconcile })

const { Expired } = LifetimeConditions

/** Reconciles one Lifetime. Runs after changes of the Lifetime, and again after a delay that an earlier run passed to `requeue`. */
async function reconcile(key: ObjectKey, io: ReconcileContext): Promise<Outcome> {
  const before = io.cache.peek(Lifetime, key)
  if (!before || isDeleting(before)) return proceed()

  const { condition, outcome } = await deleteExpired(before, io)
  const after = draft(before)
  after.status = {
    conditions: setConditions(before.status?.conditions, [condition], {
      now: io.clock.now(),
      generation: before.metadata.generation,
      order: ['Expired'],
    }),
  }
  await commitChanges(io.client, Lifetime, before, after, { conditions: ['Expired'], signal: io.signal })
  return outcome
}

/** Deletes the Cluster if the lifetime has ended. Returns the Expired condition, and a requeue if the lifetime has not ended. */
async function deleteExpired(
  { metadata, spec }: Lifetime,
  { client, clock, signal }: ReconcileContext,
): Promise<{ condition: NewCondition; outcome: Outcome }> {
  const remaining = Date.parse(metadata.creationTimestamp!) + minutes(spec.minutes) - clock.now()
  if (remaining > 0) return { condition: Expired.false('Alive', ''), outcome: requeue(remaining, 'the lifetime to end') }
  const cluster = { namespace: metadata.namespace!, name: spec.clusterName }
  await orAbsent(client.delete(Cluster, cluster, { signal }))
  return { condition: Expired.true('Expired'), outcome: proceed() }
}
