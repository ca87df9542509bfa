/** Reconciles LocalMachines: provisions and deletes a simulated machine and its Node. */
import { ClusterNameLabel, isPaused } from '@capstan/api'
import {
  commitChanges,
  mergeOutcomes,
  type Outcome,
  postponeStatus,
  proceed,
  type ReconcileContext,
  requeue,
  wait,
} from '@capstan/controller'
import {
  draft,
  hasFinalizer,
  isDeleting,
  type NewCondition,
  Node,
  type ObjectKey,
  orAbsent,
  removeFinalizer,
  summary,
} from '@capstan/kube'
import { LocalMachine, LocalMachineConditions as Conditions, LocalMachineFinalizer } from '../../kinds/local-machine.ts'
import { clusterOfMachine, labelledCluster, owningMachine, owningPool } from '../../owner.ts'
import { type PhaseReport, reportConditions, significantFields } from '../../report-conditions.ts'
import { retryOutcome, failureAt, progress } from '../../simulation.ts'
import type { Workloads } from '../../workload/workloads.ts'
import { bootInputsOf } from './boot.ts'
import { joinCluster, restoreMachine } from './node.ts'
import { provision } from './provision.ts'

export interface LocalMachineDependencies {
  readonly workloads: Workloads
}

/**
 * Reconciles one LocalMachine. May be called at any time, and any number of times. Does not use `reconcileObject`, which writes a finalizer
 * in a separate patch before the phases. Here the finalizer is added when provisioning begins. It is stored before the Node is created: in
 * the same patch as the provider ID if the machine is provisioned at once.
 */
export async function reconcileLocalMachine(
  key: ObjectKey,
  io: ReconcileContext,
  { workloads }: LocalMachineDependencies,
): Promise<Outcome> {
  let before = io.cache.peek(LocalMachine, key)
  if (!before) return proceed()
  const machine = owningMachine(io.cache, before)
  const boot = bootInputsOf(before, machine)
  const cluster = machine ? clusterOfMachine(io.cache, machine) : boot && labelledCluster(io.cache, before)
  if (!isDeleting(before)) {
    if (!boot) return wait('Machine to own this LocalMachine')
    if (!cluster) return wait('its Cluster to exist')
  }

  const paused = isPaused(cluster, before)
  if (boot && cluster && (paused || isDeleting(before))) await restoreMachine(before, boot, cluster, io, workloads)

  let after = draft(before)
  let result: PhaseReport
  if (paused) result = { outcome: wait('reconciliation to be unpaused'), conditions: [] }
  else if (isDeleting(before)) result = await remove(after, io, workloads)
  else {
    const provisioned = provision(after, boot!, cluster!, io.clock.now())
    // The Node is created in another API server, so the finalizer for its deletion must be stored first.
    if (hasFinalizer(after, LocalMachineFinalizer) && !hasFinalizer(before, LocalMachineFinalizer)) {
      const { status: _, ...main } = after
      const withoutStatus = { ...main, ...(before.status ? { status: before.status } : {}) }
      before = await commitChanges(io.client, LocalMachine, before, withoutStatus, { conditions: [], signal: io.signal })
      after = { ...after, metadata: draft(before).metadata }
    }
    const joined = await joinCluster(after, boot!, cluster!, io, workloads)
    result = {
      outcome: mergeOutcomes([provisioned.outcome, joined.outcome]),
      conditions: [provisioned.condition, joined.condition, Conditions.Deleting.false('NotDeleting')],
    }
  }
  reportConditions(after, withReady(result.conditions), cluster, io)
  const postponed = postponeStatus(io, before, after, significantFields)
  const options = { conditions: Object.keys(Conditions), cache: io.cache, signal: io.signal }
  await commitChanges(io.client, LocalMachine, before, after, options)
  return mergeOutcomes([result.outcome, postponed])
}

/** Adds the Ready condition, which summarizes the other conditions. Without other conditions, there is none. */
function withReady(conditions: readonly NewCondition[]): readonly NewCondition[] {
  if (conditions.length === 0) return []
  const ready = summary(conditions, Conditions.Ready, {
    of: ['Deleting', 'Provisioned', 'NodeProvisioned'],
    negative: ['Deleting'],
    ignoreIfMissing: ['Provisioned', 'NodeProvisioned'],
    reasons: { issue: 'NotReady', unknown: 'NotReady', info: 'Ready' },
  })
  return [ready, ...conditions]
}

/**
 * Deletes the machine, and its Node unless core deletes the Node. The workload API server stops with the last control plane machine of the
 * cluster.
 */
async function remove(object: LocalMachine, io: ReconcileContext, workloads: Workloads): Promise<PhaseReport> {
  const now = io.clock.now()
  const simulated = object.spec?.simulated
  const step = progress(Date.parse(object.metadata.deletionTimestamp!), now, {
    delay: simulated?.deletionDelay,
    failure: failureAt(simulated?.failure, 'deletion'),
  })
  if (step.state === 'running') {
    const message = 'Machine is being deleted'
    return { outcome: requeue(step.until - now, message), conditions: [Conditions.Deleting.true('Deleting', message)] }
  }
  if (step.state === 'failed') {
    const outcome = retryOutcome(step.retryAt, now, 'failed deletion')
    return { outcome, conditions: [Conditions.Deleting.true('DeletionFailed', step.message)] }
  }
  const { namespace, name, labels } = object.metadata
  const clusterName = labels?.[ClusterNameLabel]
  if (clusterName !== undefined) {
    const key = { namespace: namespace!, name: clusterName }
    const workload = workloads.clientFor(key)
    // Core deletes the Node of a machine that is removed from a pool. All other Nodes are deleted here, also those of a deleted pool.
    const pool = owningPool(io.cache, object)
    if (workload && (!pool || isDeleting(pool))) await orAbsent(workload.delete(Node, { name }))
    await workloads.leave(key, name)
  }
  removeFinalizer(object, LocalMachineFinalizer)
  return { outcome: proceed(), conditions: [] }
}
