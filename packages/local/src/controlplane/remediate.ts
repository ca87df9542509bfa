/**
 * Deletes Machines whose remediation a MachineHealthCheck has requested, one at a time. `step.ts` creates the replacements.
 */
import { ConditionOrder, Machine, MachineConditions } from '@capstan/api'
import { commitChanges, type Outcome, proceed, type ReconcileContext, requeue } from '@capstan/controller'
import { draft, isDeleting, isFalse, isTrue, keyOf, type NewCondition, orAbsent, setConditions } from '@capstan/kube'
import {
  planRemediation,
  RemediationForAnnotation,
  RemediationInProgressAnnotation,
  type RemediationFacts,
} from './remediation.ts'
import type { ControlPlaneScope } from './scope.ts'

const { HealthCheckSucceeded, OwnerRemediated } = MachineConditions

/**
 * Removes the condition OwnerRemediated of recovered Machines, then plans and performs the next remediation. Returns `deleted` when a
 * Machine was deleted: the reconcile then takes no other step.
 */
export async function remediate(
  scope: ControlPlaneScope,
  facts: Pick<RemediationFacts, 'machines' | 'pendingVersion'>,
  io: ReconcileContext,
): Promise<Outcome | 'deleted'> {
  const { controlPlane } = scope
  for (const { machine } of scope.machines) if (hasRecovered(machine)) await writeOwnerRemediated(scope, machine, undefined, io)
  removeCompletedRecord(scope)

  const now = io.clock.now()
  const plan = planRemediation({
    ...facts,
    initialized: controlPlane.status?.initialization?.controlPlaneInitialized ?? false,
    inProgress: controlPlane.metadata.annotations?.[RemediationInProgressAnnotation] !== undefined,
    limits: controlPlane.spec.remediation ?? {},
    now,
  })
  if (plan.kind === 'none') return proceed()
  const { machine } = scope.machines.find((candidate) => candidate.machine.metadata.name === plan.machine)!
  if (plan.kind === 'wait') {
    await writeOwnerRemediated(scope, machine, OwnerRemediated.false(plan.reason, plan.message), io)
    return plan.until === undefined ? proceed() : requeue(plan.until - now, plan.message)
  }
  // Written before the deletion, because a Machine that is being deleted is not processed here again.
  await writeOwnerRemediated(scope, machine, OwnerRemediated.false('MachineDeleting', 'Machine is deleting'), io)
  io.log.info('Deleting Machine (remediating unhealthy Machine)', { Machine: plan.machine })
  await orAbsent(io.client.delete(Machine, keyOf(machine), { preconditions: { uid: machine.metadata.uid } }))
  const annotations = (controlPlane.metadata.annotations ??= {})
  annotations[RemediationInProgressAnnotation] = JSON.stringify(plan.record)
  return 'deleted'
}

/**
 * Removes the annotation of a remediation in progress when the replacement exists already: an earlier reconcile created the
 * replacement, but ended before the removal of the annotation was written.
 */
function removeCompletedRecord({ controlPlane, machines }: ControlPlaneScope): void {
  const { annotations } = controlPlane.metadata
  const inProgress = annotations?.[RemediationInProgressAnnotation]
  if (inProgress === undefined) return
  if (machines.some(({ machine }) => machine.metadata.annotations?.[RemediationForAnnotation] === inProgress)) {
    delete annotations![RemediationInProgressAnnotation]
  }
}

const hasRecovered = (machine: Machine): boolean =>
  !isDeleting(machine) && isTrue(machine, HealthCheckSucceeded.type) && isFalse(machine, OwnerRemediated.type)

/** Writes the condition OwnerRemediated of a Machine; removes the condition if `condition` is `undefined`. */
async function writeOwnerRemediated(
  scope: ControlPlaneScope,
  machine: Machine,
  condition: NewCondition | undefined,
  io: ReconcileContext,
): Promise<void> {
  const changed = draft(machine)
  const { conditions } = machine.status ?? {}
  const { generation } = machine.metadata
  changed.status = {
    ...changed.status,
    conditions: condition
      ? setConditions(conditions, [condition], { now: io.clock.now(), generation, order: ConditionOrder })
      : draft(conditions ?? []).filter(({ type }) => type !== OwnerRemediated.type),
  }
  const latest = await commitChanges(io.client, Machine, machine, changed, {
    conditions: [OwnerRemediated.type],
    signal: io.signal,
  })
  scope.machines = scope.machines.map((entry) => (entry.machine === machine ? { ...entry, machine: latest } : entry))
}
