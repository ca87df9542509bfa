/** Computes the status of a control plane from the scope of one reconcile. Pure. Upstream: controlplane/kubeadm, v1.14. */
import {
  ClusterNameLabel,
  compareVersions,
  isSameRelease,
  isUpdateInProgress,
  type Machine,
  MachineConditions,
  MachineControlPlaneLabel,
} from '@capstan/api'
import { aggregate, compareText, getCondition, isFalse, isTrue, type NewCondition, shortList } from '@capstan/kube'
import {
  type LocalControlPlane,
  LocalControlPlaneConditions as Conditions,
  machineTemplateOf,
} from '../kinds/local-control-plane.ts'
import { missingCertificates } from './certificates.ts'
import { parseRecord, RemediationForAnnotation, RemediationInProgressAnnotation } from './remediation.ts'
import type { ControlPlaneScope } from './scope.ts'

type Status = NonNullable<LocalControlPlane['status']>

/**
 * Returns replica counters, versions, selector and last remediation; for a hosted control plane, `externalManagedControlPlane`
 * and, once it is initialized, its version. `controlPlaneConditions` returns the conditions except Paused; the phases of the reconcile
 * and `reconcileObject` write the other status fields.
 */
export function controlPlaneCounters({ controlPlane, cluster, machines }: ControlPlaneScope): Partial<Status> {
  if (controlPlane.spec.hosted) {
    const { version } = controlPlane.spec
    const running = controlPlane.status?.initialization?.controlPlaneInitialized ? { version, versions: [{ version }] } : {}
    return { externalManagedControlPlane: true, ...running }
  }
  const count = (type: string) => machines.filter(({ machine }) => isTrue(machine, type)).length
  const versions = versionsOf(machines.map(({ machine }) => machine))
  return {
    selector: `${ClusterNameLabel}=${cluster.metadata.name},${MachineControlPlaneLabel}`,
    replicas: machines.length,
    readyReplicas: count('Ready'),
    availableReplicas: count('Available'),
    upToDateReplicas: machines.filter(({ machine, outdated }) => upToDateCondition(machine, outdated).status === 'True').length,
    ...(versions.length === 0 ? {} : { versions, version: versions[0]!.version }),
    ...lastRemediation(controlPlane, machines),
  }
}

/** Returns the remediation in progress. Without one, returns the last remediation whose replacement exists. */
function lastRemediation(controlPlane: LocalControlPlane, machines: ControlPlaneScope['machines']): Partial<Status> {
  const inProgress = controlPlane.metadata.annotations?.[RemediationInProgressAnnotation]
  const values = inProgress
    ? [inProgress]
    : machines.map(({ machine }) => machine.metadata.annotations?.[RemediationForAnnotation])
  const [last] = values
    .filter((value) => value !== undefined)
    .map(parseRecord)
    .sort((a, b) => compareText(b.timestamp, a.timestamp))
  return last ? { lastRemediation: { machine: last.machine, time: last.timestamp, retryCount: last.retryCount } } : {}
}

/** Returns the versions of the Machines in ascending order, each with its number of Machines. */
function versionsOf(machines: readonly Machine[]): NonNullable<Status['versions']> {
  const replicas = new Map<string, number>()
  for (const { spec, status } of machines) {
    const version = status?.nodeInfo?.kubeletVersion || spec.version
    if (version) replicas.set(version, (replicas.get(version) ?? 0) + 1)
  }
  return [...replicas]
    .map(([version, count]) => ({ version, replicas: count }))
    .sort((a, b) => compareVersions(a.version, b.version))
}

export function controlPlaneConditions(scope: ControlPlaneScope): NewCondition[] {
  // CertificatesAvailable is not reported before the certificates were read, unless the reconcile failed.
  const isReported = scope.certificates.state !== 'unread' || scope.failed
  const certificatesAvailable = isReported ? [certificatesAvailableCondition(scope)] : []
  if (scope.controlPlane.spec.hosted) {
    return [
      availableCondition(scope),
      ...certificatesAvailable,
      initializedCondition(scope),
      Conditions.RollingOut.false('NotRollingOut'),
      Conditions.ScalingDown.false('NotScalingDown'),
      Conditions.ScalingUp.false('NotScalingUp'),
      deletingCondition(scope),
    ]
  }
  return [
    availableCondition(scope),
    ...certificatesAvailable,
    initializedCondition(scope),
    rollingOutCondition(scope),
    scalingDownCondition(scope),
    scalingUpCondition(scope),
    machinesReadyCondition(scope),
    machinesUpToDateCondition(scope),
    remediatingCondition(scope),
    deletingCondition(scope),
  ]
}

/** Whether the Node of the Machine exists and is Ready. */
export const isHealthy = (machine: Machine): boolean => machine.status?.nodeRef !== undefined && isTrue(machine, 'NodeReady')

function availableCondition({ controlPlane, certificates, machines }: ControlPlaneScope): NewCondition {
  if (!controlPlane.status?.initialization?.controlPlaneInitialized) {
    return Conditions.Available.false('NotAvailable', 'Control plane not yet initialized')
  }
  const healthy = machines.filter(({ machine }) => isHealthy(machine)).length
  const issues: string[] = []
  if (controlPlane.metadata.deletionTimestamp) issues.push('* Control plane metadata.deletionTimestamp is set')
  if (certificates.state !== 'available') issues.push('* Control plane certificates are not available')
  if (healthy === 0 && !controlPlane.spec.hosted)
    issues.push('* There are no Machines with healthy control plane components, at least 1 required')
  if (issues.length > 0) return Conditions.Available.false('NotAvailable', issues.join('\n'))
  const partialMessage = `* ${healthy} of ${machines.length} Machines have healthy control plane components, at least 1 required`
  return Conditions.Available.true('Available', healthy < machines.length ? partialMessage : '')
}

function certificatesAvailableCondition({ certificates }: ControlPlaneScope): NewCondition {
  const condition = Conditions.CertificatesAvailable
  switch (certificates.state) {
    case 'unread':
      return condition.unknown('InternalError', 'Please check controller logs for errors')
    case 'missing':
      return condition.false('NotAvailable', missingCertificates(certificates.purposes))
    case 'available':
      return condition.true('Available')
  }
}

const initializedCondition = ({ controlPlane, initializationIssue }: ControlPlaneScope): NewCondition =>
  controlPlane.status?.initialization?.controlPlaneInitialized
    ? Conditions.Initialized.true('Initialized')
    : Conditions.Initialized.false('NotInitialized', initializationIssue)

function rollingOutCondition({ machines }: ControlPlaneScope): NewCondition {
  const outdatedConditions = machines
    .map(({ machine, outdated }) => upToDateCondition(machine, outdated))
    .filter(({ status }) => status === 'False')
  if (outdatedConditions.length === 0) return Conditions.RollingOut.false('NotRollingOut')
  const reasons = [...new Set(outdatedConditions.flatMap(({ message }) => message.split('\n')))].sort(versionFirst)
  return Conditions.RollingOut.true(
    'RollingOut',
    [`Rolling out ${outdatedConditions.length} not up-to-date replicas`, ...reasons].join('\n'),
  )
}

const versionFirst = (a: string, b: string): number =>
  Number(b.startsWith('* Version')) - Number(a.startsWith('* Version')) || compareText(a, b)

function scalingUpCondition(scope: ControlPlaneScope): NewCondition {
  const { controlPlane, machines, template, step } = scope
  const { replicas } = controlPlane.spec
  if (replicas === undefined) return Conditions.ScalingUp.unknown('WaitingForReplicasSet', 'Waiting for spec.replicas set')
  const missing =
    template.state === 'missing' ? `${machineTemplateOf(controlPlane).spec.infrastructureRef.kind} does not exist` : undefined
  const desired = controlPlane.metadata.deletionTimestamp ? 0 : replicas
  if (machines.length >= desired) {
    const blocked = missing !== undefined && desired > 0 ? `Scaling up would be blocked because ${missing}` : ''
    return Conditions.ScalingUp.false('NotScalingUp', blocked)
  }
  const blockers = [...(step?.kind === 'wait' ? step.messages : []), ...(missing === undefined ? [] : [`* ${missing}`])]
  const message = `Scaling up from ${machines.length} to ${desired} replicas`
  return Conditions.ScalingUp.true(
    'ScalingUp',
    blockers.length === 0 ? message : [`${message} is blocked because:`, ...blockers].join('\n'),
  )
}

function scalingDownCondition({ controlPlane, machines, step }: ControlPlaneScope): NewCondition {
  const { replicas } = controlPlane.spec
  if (replicas === undefined) return Conditions.ScalingDown.unknown('WaitingForReplicasSet', 'Waiting for spec.replicas set')
  const desired = controlPlane.metadata.deletionTimestamp ? 0 : replicas
  if (machines.length <= desired) return Conditions.ScalingDown.false('NotScalingDown')
  const blockers = step?.kind === 'wait' ? step.messages : []
  const message = `Scaling down from ${machines.length} to ${desired} replicas`
  return Conditions.ScalingDown.true(
    'ScalingDown',
    blockers.length === 0 ? message : [`${message} is blocked because:`, ...blockers].join('\n'),
  )
}

function machinesReadyCondition({ machines }: ControlPlaneScope): NewCondition {
  if (machines.length === 0) return Conditions.MachinesReady.true('NoReplicas')
  return aggregate(
    machines.map(({ machine }) => machine),
    'Ready',
    { as: Conditions.MachinesReady, reasons: { issue: 'NotReady', unknown: 'ReadyUnknown', info: 'Ready' } },
  )
}

/** Aggregates the UpToDate conditions that this reconcile computes for the Machines, because their stored conditions may be outdated. */
function machinesUpToDateCondition({ machines }: ControlPlaneScope): NewCondition {
  if (machines.length === 0) return Conditions.MachinesUpToDate.true('NoReplicas')
  return aggregate(
    machines.map(({ machine, outdated }) => ({
      kind: machine.kind,
      metadata: machine.metadata,
      status: { conditions: [upToDateCondition(machine, outdated)] },
    })),
    'UpToDate',
    { as: Conditions.MachinesUpToDate, reasons: { issue: 'NotUpToDate', unknown: 'UpToDateUnknown', info: 'UpToDate' } },
  )
}

/** Whether a MachineHealthCheck has requested that the owner replaces the Machine. */
export const isToBeRemediated = (machine: Machine): boolean =>
  isFalse(machine, 'HealthCheckSucceeded') && isFalse(machine, 'OwnerRemediated')

function remediatingCondition({ machines }: ControlPlaneScope): NewCondition {
  const failing = machines.map(({ machine }) => machine).filter((machine) => isFalse(machine, 'HealthCheckSucceeded'))
  const toBeRemediated = failing.filter(isToBeRemediated)
  if (toBeRemediated.length > 0)
    return Conditions.Remediating.true('Remediating', aggregate(toBeRemediated, 'OwnerRemediated').message)
  if (failing.length === 0) return Conditions.Remediating.false('NotRemediating')
  const names = shortList(failing.map(({ metadata }) => metadata.name).sort(compareText), 3)
  const subject = failing.length === 1 ? `Machine ${names} is` : `Machines ${names} are`
  return Conditions.Remediating.false('NotRemediating', `${subject} not healthy (not to be remediated by LocalControlPlane)`)
}

/** Returns the UpToDate condition of a Machine. `outdated` are the reasons why the Machine must be replaced or updated in place. */
export function upToDateCondition(machine: Machine, outdated: readonly string[]): NewCondition {
  const { UpToDate } = MachineConditions
  if (outdated.length > 0) return UpToDate.false('NotUpToDate', outdated.map((reason) => `* ${reason}`).join('\n'))
  if (isUpdateInProgress(machine)) {
    const updating = getCondition(machine, 'Updating')
    const message = updating?.status === 'True' && updating.message ? updating.message : 'In-place update in progress'
    return UpToDate.false('Updating', `* ${message}`)
  }
  const kubelet = machine.status?.nodeInfo?.kubeletVersion
  const { version } = machine.spec
  if (kubelet && version && !isSameRelease(kubelet, version)) {
    return UpToDate.false('Updating', `* Node.status.nodeInfo.kubeletVersion ${kubelet}, ${version} required`)
  }
  return UpToDate.true('UpToDate')
}

function deletingCondition({ deletion, machines, workers }: ControlPlaneScope): NewCondition {
  const condition = Conditions.Deleting
  switch (deletion) {
    case 'none':
      return condition.false('NotDeleting')
    case 'waiting for workers':
      return condition.true(
        'WaitingForWorkersDeletion',
        `LocalControlPlane deletion blocked because following objects still exist:\n* Machines: ${namesText(workers)}`,
      )
    case 'waiting for machines':
      return condition.true(
        'WaitingForMachineDeletion',
        `Deleting ${machines.length} ${machines.length === 1 ? 'Machine' : 'Machines'}`,
      )
    case 'completed':
      return condition.true('DeletionCompleted', 'Deletion completed')
    case 'failed':
      return condition.true('InternalError', 'Please check controller logs for errors')
  }
}

const namesText = (names: readonly string[]): string => shortList(names, 5)
