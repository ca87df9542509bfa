/**
 * Computes conditions and phase of a Machine, and requests a reconcile at the time at which `minReadySeconds` have passed. Pure, except that
 * it changes the draft and logs invalid readiness gates. Upstream: core/reconcilers/machine/machine_controller_status.go, v1.14.
 */
import { ConditionOrder, isUpdateInProgress, type Machine, MachineConditions, pausedCondition } from '@capstan/api'
import { type Outcome, proceed, requeue } from '@capstan/controller'
import {
  type Condition,
  getCondition,
  isDeleting,
  isFalse,
  isTrue,
  type Logger,
  minutes,
  type NewCondition,
  type ReportedCondition,
  seconds,
  setConditions,
  timeLeft,
  timestamp,
} from '@capstan/kube'
import type { Health } from '../cluster-cache/accessor.ts'
import { bootstrapConfigReadyCondition } from './bootstrap.ts'
import { drainDelayText } from './drain-delays.ts'
import { updatingCondition } from './in-place-update.ts'
import { gatedSummary } from '../gated-summary.ts'
import { infrastructureReadyCondition } from './infrastructure.ts'
import { reportLegacyStatus } from './legacy-status.ts'
import { nodeConditions } from './node.ts'
import type { MachineScope } from './scope.ts'
import { templateDifferences } from './template-differences.ts'

/** Inputs of `reportStatus` beside the scope. */
export interface StatusFacts {
  readonly now: number
  /** Health of the connection to the workload cluster. */
  readonly health: Health
  /** Milliseconds without a successful probe of the workload cluster after which the Node conditions become Unknown. */
  readonly gracePeriod: number
  /** Logs invalid readiness gates. */
  readonly log: Logger
}

/** Conditions that this controller owns; UpToDate additionally for Machines of a MachineDeployment. */
export const OwnedConditions = [
  'Available',
  'Ready',
  'BootstrapConfigReady',
  'InfrastructureReady',
  'NodeReady',
  'NodeHealthy',
  'Updating',
  'Deleting',
  'Paused',
] as const satisfies readonly (keyof typeof MachineConditions)[]

/** Conditions that this controller owns on this Machine. Control plane providers report UpToDate of their Machines themselves. */
export const ownedConditions = ({ machineSet, machineDeployment }: MachineScope): string[] =>
  machineSet && machineDeployment ? [...OwnedConditions, MachineConditions.UpToDate.type] : [...OwnedConditions]

/**
 * Writes conditions (also in the v1beta1 form) and phase to the scope's draft. Returns a requeue if the Machine is Ready, but not yet for
 * `minReadySeconds`: no watch event occurs when it becomes Available.
 */
export function reportStatus(scope: MachineScope, facts: StatusFacts): Outcome {
  const { machine } = scope
  const status = (machine.status ??= {})
  const set = (conditions: readonly NewCondition[]) => {
    const { generation } = machine.metadata
    status.conditions = setConditions(status.conditions, conditions, { now: facts.now, generation, order: ConditionOrder })
  }
  set([
    bootstrapConfigReadyCondition(scope),
    infrastructureReadyCondition(scope),
    ...nodeConditions({ ...scope, ...facts }),
    ...upToDateConditions(scope, facts.now),
    deletingCondition(scope),
    updatingCondition(scope),
    pausedCondition(scope.cluster, machine),
  ])
  set([readyCondition(machine, facts)])
  const availability = available(machine, facts.now)
  set([availability.condition])

  const phase = phaseOf(machine)
  if (status.phase !== phase) {
    status.phase = phase
    status.lastUpdated = timestamp(facts.now)
  }
  reportLegacyStatus(scope, facts.now)
  return availability.outcome
}

/**
 * Returns the parts of the status whose changes are written at once: controllers act on them, or their values are recorded only in the
 * status. Changes of other parts may be postponed.
 */
export function significantFields(machine: Machine): unknown {
  const { conditions: _c, deprecated: _d, phase: _p, lastUpdated: _l, observedGeneration: _o, ...reported } = machine.status ?? {}
  const { initialization, ...facts } = reported
  return {
    ...facts,
    isProvisioned: initialization?.infrastructureProvisioned,
    true: ['Ready', 'Available', 'InfrastructureReady', 'NodeReady', 'Updating', 'Paused'].map((type) => isTrue(machine, type)),
    false: ['UpToDate', 'NodeHealthy'].map((type) => isFalse(machine, type)),
  }
}

/** Returns the phase by the first rule that applies. If no rule applies, the earlier phase stays; a Machine without phase is Pending. */
function phaseOf({ metadata, spec, status }: Machine): NonNullable<NonNullable<Machine['status']>['phase']> {
  const initialization = status?.initialization
  if (isDeleting({ metadata })) return 'Deleting'
  if (isUpdateInProgress({ metadata })) return 'Updating'
  if (status?.nodeRef && initialization?.infrastructureProvisioned) return 'Running'
  if (spec.providerID) return 'Provisioned'
  if (initialization?.bootstrapDataSecretCreated && !initialization.infrastructureProvisioned) return 'Provisioning'
  return status?.phase ?? 'Pending'
}

function deletingCondition({ machine, deletion }: MachineScope): NewCondition {
  const { Deleting } = MachineConditions
  return isDeleting(machine) ? Deleting.true(deletion.reason, deletion.message) : Deleting.false('NotDeleting')
}

/** Returns the UpToDate condition of a Machine of a MachineDeployment; no condition for other Machines. */
function upToDateConditions(scope: MachineScope, now: number): NewCondition[] {
  const { machine, machineSet, machineDeployment } = scope
  if (!machineSet || !machineDeployment) return []
  const { UpToDate } = MachineConditions
  const differences = templateDifferences(machineSet.spec.template, machineDeployment.spec.template)
  const rolloutAfter = Date.parse(machineDeployment.spec.rollout?.after ?? '')
  if (rolloutAfter <= now && Date.parse(machineSet.metadata.creationTimestamp) < rolloutAfter) {
    differences.push('MachineDeployment spec.rolloutAfter expired')
  }
  if (differences.length > 0) return [UpToDate.false('NotUpToDate', differences.map((line) => `* ${line}`).join('\n'))]
  if (isUpdateInProgress(machine)) return [UpToDate.false('Updating', `* ${updatingCondition(scope).message}`)]
  const kubelet = machine.status?.nodeInfo?.kubeletVersion
  // As upstream, a Machine without a version is never up to date once its Node reports a version.
  const { version = '' } = machine.spec
  if (kubelet && kubelet !== version) {
    return [UpToDate.false('Updating', `* Node.status.nodeInfo.kubeletVersion ${kubelet}, ${version} required`)]
  }
  return [UpToDate.true('UpToDate')]
}

/** Conditions of a Machine that describe other objects: those that it references, and its Node. */
const externalConditions = ['BootstrapConfigReady', 'InfrastructureReady', 'NodeHealthy']
/** Reasons of these conditions that are expected while the Machine is being deleted. */
const goneReasons = ['ObjectDeleted', 'ObjectDoesNotExist', 'NodeDeleted', 'NodeDoesNotExist']

function readyCondition(machine: Machine, { now, log }: StatusFacts): NewCondition {
  const isGone = ({ type, reason = '' }: ReportedCondition) => externalConditions.includes(type) && goneReasons.includes(reason)
  return gatedSummary(machine, MachineConditions.Ready, {
    of: ['Deleting', 'Updating', ...externalConditions, 'HealthCheckSucceeded'],
    gates: machine.spec.readinessGates ?? [],
    negative: ['Deleting', 'Updating'],
    ignoreIfMissing: ['HealthCheckSucceeded'],
    overrides: isDeleting(machine) ? [deletingSummary(machine, now)] : [],
    reasons: { issue: 'NotReady', unknown: 'ReadyUnknown', info: 'Ready' },
    isExpected: (condition) => isDeleting(machine) && isGone(condition),
    lines: mergeControlPlaneComponents,
    log,
  })
}

/**
 * Returns a short form of the Deleting condition, which can be aggregated over many Machines: the stage and, after 15 minutes, likely causes
 * of the delay.
 */
function deletingSummary(machine: Machine, now: number): NewCondition {
  const { reason = '' } = getCondition(machine, 'Deleting') ?? {}
  const isLate = now - Date.parse(machine.metadata.deletionTimestamp!) > minutes(15)
  const since = isLate ? ' since more than 15m' : ''
  const delay = isLate ? drainDelayText([machine], now) : ''
  return MachineConditions.Deleting.true('Deleting', `Machine deletion in progress${since}, stage: ${reason}${delay}`)
}

/** Merges the lines of control plane components into one line if all of them have the same text. */
function mergeControlPlaneComponents(lines: string[]): string[] {
  const isComponent = (line: string) => /^\* (APIServer|ControllerManager|Scheduler|EtcdPodHealthy:)/.test(line)
  const textOf = (line: string) => line.slice(line.indexOf(':') + 1)
  const components = lines.filter(isComponent)
  if (components.length < 2 || components.some((line) => textOf(line) !== textOf(components[0]!))) return lines
  const first = lines.indexOf(components[0]!)
  return lines.flatMap((line, index) =>
    index === first ? `* Control plane components:${textOf(line)}` : isComponent(line) ? [] : line,
  )
}

function available({ spec, status }: Machine, now: number): { condition: NewCondition; outcome: Outcome } {
  const { Available } = MachineConditions
  const ready = getCondition({ status }, 'Ready') as Condition
  if (ready.status !== 'True') return { condition: Available.false('NotReady'), outcome: proceed() }
  const since = Date.parse(ready.lastTransitionTime)
  const remaining = timeLeft({ since, length: seconds(spec.minReadySeconds ?? 0), now })
  if (remaining <= 0) return { condition: Available.true('Available'), outcome: proceed() }
  return {
    condition: Available.false('WaitingForMinReadySeconds'),
    outcome: requeue(remaining, `the Machine to be Ready for ${spec.minReadySeconds} s`),
  }
}
