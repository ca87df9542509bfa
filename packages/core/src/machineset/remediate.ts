/** Remediates unhealthy Machines by deleting them. Upstream: reconcileUnhealthyMachines in machineset_controller.go, v1.14. */
import { ConditionOrder, Machine, MachineConditions, type MachineDeployment, RemediateMachineAnnotation } from '@capstan/api'
import { commitChanges, type Outcome, proceed, wait } from '@capstan/controller'
import {
  compareText,
  draft,
  getCondition,
  isDeleting,
  isFalse,
  isTrue,
  keyOf,
  keyText,
  legacyConditionsOf,
  legacyFalse,
  legacyTrue,
  messageOf,
  type NewCondition,
  type NewLegacyCondition,
  orAbsent,
  setConditions,
  TerminalError,
} from '@capstan/kube'
import { reportLegacy, reportLegacyConditions } from '../legacy-status.ts'
import { shareOf } from '../share-of.ts'
import { isToBeRemediated } from './plan-moves.ts'
import { preflight } from './preflight.ts'
import type { MachineSetIO, MachineSetPhase, MachineSetScope } from './scope.ts'
import { isOldRevision } from './templates.ts'
import { throwAggregate } from '../aggregate-errors.ts'

const { HealthCheckSucceeded, OwnerRemediated } = MachineConditions
const type = OwnerRemediated.type

/**
 * Deletes Machines whose remediation a MachineHealthCheck has requested by the condition OwnerRemediated; `replicas.ts` then creates new
 * Machines. Removes the request from Machines that have recovered. OwnerRemediated gets the reason MachineDeleting before the deletion,
 * because later reconciles skip Machines that are being deleted.
 */
export const remediate: MachineSetPhase = async (scope, io) => {
  if (!scope.machines) return proceed()
  const recovered = scope.machines.filter(
    (machine) => !isDeleting(machine) && (hasRecovered(machine) || hasRecoveredInLegacy(machine)),
  )
  await forEach(recovered, async (machine) => {
    await writeConditions(scope, machine, withoutRequest(machine), io)
  })

  const requested = scope.machines.filter((machine) => isToBeRemediated(machine) && !isDeleting(machine))
  if (requested.length === 0) return proceed()
  if (scope.machineDeployment && isOldRevision(scope)) {
    const message = "Machine won't be remediated because it is pending removal due to rollout"
    await report(scope, requested, { condition: OwnerRemediated.false('CannotBeRemediated', message) }, io)
    return proceed()
  }

  const limit = scope.machineDeployment?.spec.remediation?.maxInFlight
  const { now, later } = planRemediation(scope.machines, requested, maxRemediations(scope.machineDeployment))
  if (later.length > 0) {
    const reason = 'Waiting because there are already too many remediations in progress'
    const message = `${reason} (spec.strategy.remediation.maxInFlight is ${limit})`
    await report(scope, later, { condition: OwnerRemediated.false('RemediationDeferred', message) }, io)
  }
  return now.length === 0 ? proceed() : deleteUnhealthy(scope, now, io)
}

async function deleteUnhealthy(scope: MachineSetScope, unhealthy: readonly Machine[], io: MachineSetIO): Promise<Outcome> {
  let problems: string[]
  let failure: unknown
  try {
    problems = await preflight(scope, 'Machine remediation', io)
  } catch (err) {
    problems = [messageOf(err)]
    failure = err
  }
  if (problems.length > 0) {
    const message = problems.map((problem) => `* ${problem}`).join('\n')
    const condition = OwnerRemediated.false('RemediationDeferred', message)
    const legacy = legacyFalse(type, 'WaitingForRemediation', 'Warning', problems.join('; '))
    await report(scope, unhealthy, { condition, legacy }, io)
    if (failure !== undefined) throw failure
    return wait(problems.join('; '))
  }

  const condition = OwnerRemediated.false('MachineDeleting', 'Machine is deleting')
  // As upstream, no Machine is deleted before all unhealthy Machines have the condition.
  const reportedMachines = new Map<Machine, Machine | undefined>()
  await forEach(unhealthy, async (machine) => {
    reportedMachines.set(machine, await reportOn(scope, machine, { condition }, io))
  })
  await forEach(unhealthy, async (machine) => {
    const { name, uid } = machine.metadata
    const reported = reportedMachines.get(machine)
    io.log.info('Deleting Machine (remediating unhealthy Machine)', { Machine: name })
    try {
      await orAbsent(io.client.delete(Machine, keyOf(machine), { preconditions: { uid }, signal: io.signal }))
    } finally {
      // The v1beta1 condition is written after the deletion: while the Machine is not being deleted, a health check treats this condition
      // as the success of an earlier remediation, and requests another. Upstream also sets the condition if the deletion fails.
      if (reported) await reportOn(scope, reported, { legacy: legacyTrue(type) }, io)
    }
  })
  return proceed()
}

export interface RemediationPlan {
  readonly now: readonly Machine[]
  readonly later: readonly Machine[]
}

/**
 * Selects the Machines to delete and those that must wait. Machines marked by a user come first, then the newest, which are the least
 * likely to run workloads. Remediations that this set has started count towards `maxInFlight` until their Machines are gone.
 */
export function planRemediation(
  machines: readonly Machine[],
  requested: readonly Machine[],
  maxInFlight: number,
): RemediationPlan {
  const inFlight = machines.filter((machine) => isDeleting(machine) && isRemediationStarted(machine)).length
  const capacity = Math.max(maxInFlight - inFlight, 0)
  const ordered = [...requested].sort(byUrgency)
  return { now: ordered.slice(0, capacity), later: ordered.slice(capacity) }
}

function isRemediationStarted(machine: Machine): boolean {
  const condition = getCondition(machine, type)
  return condition?.status === 'False' && condition.reason === 'MachineDeleting'
}

function byUrgency(a: Machine, b: Machine): number {
  const [markedA, markedB] = [a, b].map(({ metadata }) => metadata.annotations?.[RemediateMachineAnnotation] !== undefined)
  if (markedA !== markedB) return markedA ? -1 : 1
  const newestFirst = Date.parse(b.metadata.creationTimestamp) - Date.parse(a.metadata.creationTimestamp)
  return newestFirst || compareText(a.metadata.name, b.metadata.name)
}

/** Returns the maximum number of concurrent remediations; Infinity without a limit. */
function maxRemediations(deployment: MachineDeployment | undefined): number {
  const { remediation, replicas = 1 } = deployment?.spec ?? {}
  if (remediation?.maxInFlight === undefined) return Infinity
  const share = shareOf(remediation.maxInFlight, replicas, Math.ceil)
  if (share !== undefined) return share
  const text = JSON.stringify(remediation.maxInFlight)
  throw new TerminalError(`failed to calculate maxInFlight to remediate machines: ${text} is neither a number nor a percentage`)
}

/** Whether the Machine became healthy before it was remediated, according to the conditions. */
const hasRecovered = (machine: Machine): boolean => isTrue(machine, HealthCheckSucceeded.type) && isFalse(machine, type)

/** Whether the Machine became healthy before it was remediated, according to the v1beta1 form of the conditions. */
const hasRecoveredInLegacy = (machine: Machine): boolean =>
  legacyStatus(machine, HealthCheckSucceeded.type) === 'True' && legacyStatus(machine, type) === 'False'

const legacyStatus = (machine: Machine, conditionType: string): string | undefined =>
  legacyConditionsOf(machine).find((condition) => condition.type === conditionType)?.status

/**
 * Returns the Machine without its remediation request. Removes each form of the request, v1beta2 and v1beta1, only if the health check has
 * succeeded in the same form.
 */
function withoutRequest(machine: Machine): Machine {
  const after = draft(machine)
  const isOther = (condition: { readonly type: string }) => condition.type !== type
  if (hasRecovered(machine)) after.status = { ...after.status, conditions: after.status?.conditions?.filter(isOther) ?? [] }
  if (hasRecoveredInLegacy(machine)) reportLegacy(after, { conditions: legacyConditionsOf(after).filter(isOther) })
  return after
}

interface RemediationReport {
  readonly condition?: NewCondition
  readonly legacy?: NewLegacyCondition
}

const report = (
  scope: MachineSetScope,
  machines: readonly Machine[],
  change: RemediationReport,
  io: MachineSetIO,
): Promise<void> =>
  forEach(machines, async (machine) => {
    await reportOn(scope, machine, change, io)
  })

function reportOn(
  scope: MachineSetScope,
  machine: Machine,
  { condition, legacy }: RemediationReport,
  io: MachineSetIO,
): Promise<Machine | undefined> {
  const after = draft(machine)
  const now = io.clock.now()
  const options = { now, generation: machine.metadata.generation, order: ConditionOrder }
  if (condition) after.status = { ...after.status, conditions: setConditions(machine.status?.conditions, [condition], options) }
  if (legacy) reportLegacyConditions(after, [legacy], { now })
  return writeConditions(scope, machine, after, io)
}

/** Writes the conditions of a Machine; later phases read the updated Machine. Returns `undefined` if the Machine does not exist. */
async function writeConditions(
  scope: MachineSetScope,
  before: Machine,
  after: Machine,
  { client, cache, signal }: MachineSetIO,
): Promise<Machine | undefined> {
  const options = { conditions: [type], legacyConditions: [type], cache, signal }
  const written = await orAbsent(commitChanges(client, Machine, before, after, options))
  if (written)
    scope.machines = scope.machines!.map((machine) => (machine.metadata.uid === written.metadata.uid ? written : machine))
  return written
}

/** Calls `act` for every Machine, then throws one error with all failures, if there are any. */
async function forEach(machines: readonly Machine[], act: (machine: Machine) => Promise<void>): Promise<void> {
  const errors: unknown[] = []
  for (const machine of machines) {
    try {
      await act(machine)
    } catch (err) {
      errors.push(new Error(`failed to remediate Machine ${keyText(keyOf(machine))}: ${messageOf(err)}`, { cause: err }))
    }
  }
  throwAggregate(errors)
}
