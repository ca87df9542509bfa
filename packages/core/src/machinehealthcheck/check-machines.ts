import {
  ClusterConditions,
  ClusterNameLabel,
  hasPausedAnnotation,
  type Machine,
  MachineSkipRemediationAnnotation,
} from '@capstan/api'
import { type Outcome, proceed, requeue, wait } from '@capstan/controller'
import { appendAll, isTrue, keyOf, labelSelector, smallest } from '@capstan/kube'
import type { WorkloadCluster } from '../cluster-cache/accessor.ts'
import { MachinesByClusterName } from '../indexes.ts'
import { endExternalRemediation, RemediationProblem, requestExternalRemediation } from './external-remediation.ts'
import { type Health, healthOf, type Target } from './health.ts'
import { type MachineChange, reportHealth } from './report-health.ts'
import { remediationLimit } from './remediation-limit.ts'
import type { MachineHealthCheckIO, MachineHealthCheckPhase, MachineHealthCheckScope } from './scope.ts'
import { throwAggregate } from '../aggregate-errors.ts'

type CheckedTarget = Target & { readonly health: Health }

/** Checks all selected Machines, writes their health conditions, and starts or ends their remediation. */
export const checkMachines: MachineHealthCheckPhase = async (scope, io) => {
  const { healthCheck, cluster } = scope
  const isInitialized = isTrue(cluster, ClusterConditions.ControlPlaneInitialized.type)
  const workload = isInitialized ? io.clusters.connection(keyOf(cluster)) : undefined
  if (isInitialized && !workload) return wait('connection to the workload cluster is down')

  const now = io.clock.now()
  const checked = targetsOf(scope, io, workload).map(
    (target): CheckedTarget => ({ ...target, health: healthOf(target, healthCheck, cluster, now) }),
  )
  const count = (kind: Health['kind']) => checked.filter(({ health }) => health.kind === kind).length
  const totals = { expected: checked.length, healthy: count('healthy'), unhealthy: count('unhealthy') }
  const status = (healthCheck.status ??= {})
  status.expectedMachines = totals.expected
  status.currentHealthy = totals.healthy
  status.targets = checked.map(({ machine }) => machine.metadata.name).sort()
  if (status.targets.length === 0) delete status.targets
  scope.limit = remediationLimit(healthCheck, totals)
  scope.isAnyUnhealthy = totals.unhealthy > 0

  const errors: unknown[] = []
  for (const target of checked) {
    try {
      await report(target, scope, io)
    } catch (err) {
      errors.push(err)
    }
  }
  throwAggregate(errors)
  return nextCheck(checked)
}

/** Returns the Machines to check, with their Nodes. Leaves out Machines with the paused annotation or the skip-remediation annotation. */
function targetsOf(
  { healthCheck }: MachineHealthCheckScope,
  { cache }: MachineHealthCheckIO,
  workload: WorkloadCluster | undefined,
): Target[] {
  const { metadata, spec } = healthCheck
  const selector = labelSelector(spec.selector)
  return cache
    .byIndex(MachinesByClusterName, `${metadata.namespace}/${spec.clusterName}`)
    .filter((machine) => machine.metadata.labels?.[ClusterNameLabel] === spec.clusterName)
    .filter((machine) => selector.matches(machine.metadata.labels))
    .filter((machine) => !hasPausedAnnotation(machine) && !skipsRemediation(machine))
    .map((machine) => ({ machine, node: nodeOf(machine, workload) }))
}

const skipsRemediation = ({ metadata }: Machine): boolean =>
  metadata.annotations?.[MachineSkipRemediationAnnotation] !== undefined

function nodeOf({ status }: Machine, workload: WorkloadCluster | undefined): Target['node'] {
  const name = status?.nodeRef?.name
  if (!workload || !name) return { state: 'none' }
  const node = workload.node(name)
  return node ? { state: 'found', node } : { state: 'deleted', name }
}

/**
 * Writes the health of a Machine once it is known. If remediation is allowed, also starts or ends the remediation. Without a remediation
 * template, it requests that the owner remediate an unhealthy Machine. With a template, it creates a remediation request for an unhealthy
 * Machine, and deletes the request for a healthy Machine.
 */
async function report(target: CheckedTarget, scope: MachineHealthCheckScope, io: MachineHealthCheckIO): Promise<void> {
  const { machine, health } = target
  if (health.kind === 'pending' || health.kind === 'unknown') return
  const templateRef = scope.healthCheck.spec.remediation?.templateRef
  const isRemediationAllowed = scope.limit?.allowed === true
  const change: MachineChange = { conditions: [health.condition], legacy: [health.legacy], isRestricted: !isRemediationAllowed }
  let failure: unknown
  if (isRemediationAllowed && templateRef) {
    try {
      if (health.kind === 'healthy') await endExternalRemediation(machine, templateRef, io)
      else {
        const request = await requestExternalRemediation(machine, templateRef, scope, io)
        appendAll(change.conditions, request.conditions)
        change.isRequested = request.isCreated
      }
    } catch (err) {
      failure = err
      if (err instanceof RemediationProblem) change.conditions.push(err.condition)
    }
  } else if (isRemediationAllowed && health.kind === 'unhealthy') {
    change.remediateByOwner = true
  }
  await reportHealth(machine, change, scope.healthCheck, io)
  if (failure !== undefined) throw failure
}

function nextCheck(checked: readonly CheckedTarget[]): Outcome {
  const delays = checked.flatMap(({ health }) => (health.kind === 'pending' ? [health.after] : []))
  return delays.length === 0 ? proceed() : requeue(smallest(delays), 'Machines may become unhealthy')
}
