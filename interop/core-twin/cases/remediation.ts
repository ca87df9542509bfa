/**
 * Cases in which a MachineSet of a MachineDeployment remediates unhealthy Machines, or does not.
 * Every case does the same with upstream's core and with Capstan's, and compares all objects after each step (`settle`).
 */
import { Machine, MachineDeployment, MachineHealthCheck, MachineSet } from '@capstan/api'
import { getCondition, isDeleting, isFalse, isTrue, type KubeObject } from '@capstan/kube'
import { machineDeployment } from '../objects.ts'
import { noReport } from '../providers.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { healthCheck, reportNodesReady } from './health-check.ts'
import { createReadyCluster } from './machine.ts'
import { version } from './machine-deployment.ts'
import { byName, createWorkerTemplates, deny, hasLabel, labels, machinesIn } from './machine-set.ts'

const ofDeployment = { selector: { matchLabels: { deployment: 'md' } } }

const reasonOf = (machine: Machine): string | undefined => getCondition(machine, 'OwnerRemediated')?.reason

/**
 * Returns a predicate: whether exactly `deleting` Machines are being deleted, and exactly `withReason` Machines have the condition
 * OwnerRemediated with this reason.
 */
const counts = (deleting: number, reason: string, withReason: number) => (objects: readonly KubeObject[]) =>
  machinesIn(objects).filter(isDeleting).length === deleting &&
  machinesIn(objects).filter((machine) => reasonOf(machine) === reason).length === withReason

/**
 * Returns fields that set the prefix of the names of new Machines. Messages list Machines in the order of their names, so Machines with
 * different prefixes are listed in the same order on both sides.
 */
const machineNaming = (prefix: string) => ({ machineNaming: { template: `${prefix}-{{ .random }}` } })

const paused = (isPaused: boolean) => ({ metadata: { annotations: { 'cluster.x-k8s.io/paused': isPaused ? '' : null } } })

interface Unhealthy {
  readonly maxInFlight?: number | string
  readonly replicas: number
  /** Whether a user marks the oldest Machine for remediation. */
  readonly marksOldest?: boolean
  /** Called before the MachineSet of the unhealthy Machines is resumed. */
  readonly beforeResume?: () => Promise<void>
}

/**
 * Creates a MachineDeployment. The oldest of its Machines has the label `oldest`. All Machines become unhealthy while the MachineSet is
 * paused, so that each core decides about all of them together. Then the MachineSet is resumed. Finalizers of the infrastructure machines
 * block the deletion of the Machines.
 */
async function createUnhealthyMachines(
  twin: Twin,
  { maxInFlight, replicas, marksOldest, beforeResume }: Unhealthy,
): Promise<void> {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(
    MachineDeployment,
    machineDeployment('md', {
      replicas: 1,
      ...(maxInFlight === undefined ? {} : { remediation: { maxInFlight } }),
      ...machineNaming('a'),
    }),
  )
  await twin.settle('one Machine runs', (objects) => machinesIn(objects).length === 1)
  await twin.patch(Machine, byName(0), labels('oldest'))
  await twin.patch(MachineDeployment, 'md', { spec: { replicas, ...machineNaming('b') } })
  await twin.settle('all Machines run', (objects) => machinesIn(objects).length === replicas)
  await twin.create(MachineHealthCheck, healthCheck(ofDeployment) as never)
  await twin.patch(MachineSet, byName(0), paused(true))
  if (marksOldest)
    await twin.patch(Machine, (machines) => machines.find(hasLabel('oldest')), {
      metadata: { annotations: { 'cluster.x-k8s.io/remediate-machine': '' } },
    })
  for (let index = 0; index < replicas; index++)
    await twin.patch(stub.machine, byName(index), { metadata: { finalizers: ['twin.capstan.dev/hold'] } })
  await reportNodesReady(twin, 'False', replicas)
  await twin.settle('all Machines are unhealthy', (objects) =>
    machinesIn(objects).every((machine) => isFalse(machine, 'HealthCheckSucceeded') && isFalse(machine, 'OwnerRemediated')),
  )
  await beforeResume?.()
  await twin.patch(MachineSet, byName(0), paused(false))
}

const releaseDeleted = (twin: Twin) =>
  twin.patch(stub.machine, (machines) => machines.find(isDeleting), { metadata: { finalizers: null } })

const isDeletingOldest = (objects: readonly KubeObject[]) =>
  machinesIn(objects).some((machine) => hasLabel('oldest')(machine) && isDeleting(machine))

const oneAtATime: Case = async (twin) => {
  await createUnhealthyMachines(twin, { maxInFlight: 1, replicas: 2 })
  await twin.settle(
    'the newest Machine is deleted, and the oldest waits',
    (objects) => counts(1, 'RemediationDeferred', 1)(objects) && !isDeletingOldest(objects),
  )
  await releaseDeleted(twin)
  await twin.settle(
    'a new Machine replaces the newest, and the oldest is deleted',
    (objects) => counts(1, 'RemediationDeferred', 0)(objects) && isDeletingOldest(objects),
  )
  await releaseDeleted(twin)
  await twin.settle('a new Machine replaces the oldest', counts(0, 'RemediationDeferred', 0))
}

const percentage: Case = async (twin) => {
  await createUnhealthyMachines(twin, { maxInFlight: '50%', replicas: 3 })
  await twin.settle(
    'two Machines are deleted, and the oldest waits',
    (objects) => counts(2, 'RemediationDeferred', 1)(objects) && !isDeletingOldest(objects),
  )
}

const noneInFlight: Case = async (twin) => {
  await createUnhealthyMachines(twin, { maxInFlight: 0, replicas: 2 })
  await twin.settle('both Machines wait', counts(0, 'RemediationDeferred', 2))
  await twin.patch(MachineDeployment, 'md', { spec: { remediation: null } })
  await twin.touch(MachineSet, byName(0))
  await twin.settle('both Machines are deleted', counts(2, 'RemediationDeferred', 0))
}

const marked: Case = async (twin) => {
  await createUnhealthyMachines(twin, { maxInFlight: 1, replicas: 2, marksOldest: true })
  await twin.settle(
    'the marked Machine is deleted, and the newest waits',
    (objects) => counts(1, 'RemediationDeferred', 1)(objects) && isDeletingOldest(objects),
  )
}

/** Pauses the MachineHealthCheck. Otherwise it may request the remediation of a Machine again right before upstream deletes the Machine. */
async function pauseChecks(twin: Twin): Promise<void> {
  await twin.patch(MachineHealthCheck, 'mhc', paused(true))
  await twin.settle('checks are paused', (objects) =>
    objects.some((object) => object.kind === MachineHealthCheck.kind && isTrue(object as MachineHealthCheck, 'Paused')),
  )
}

const withoutLimit: Case = async (twin) => {
  await createUnhealthyMachines(twin, { replicas: 3, beforeResume: () => pauseChecks(twin) })
  await twin.settle('all Machines are deleted', counts(3, 'MachineDeleting', 3))
}

/** A user has deleted the newest Machine, which is unhealthy too. Its deletion does not count as a remediation. */
const deletedByUser: Case = async (twin) => {
  const isNewest = (machine: Machine) => !hasLabel('oldest')(machine)
  await createUnhealthyMachines(twin, {
    maxInFlight: 1,
    replicas: 2,
    beforeResume: async () => {
      await pauseChecks(twin)
      await twin.delete(Machine, (machines) => machines.find(isNewest))
      await twin.settle('the newest Machine is being deleted', counts(1, 'RemediationDeferred', 0))
    },
  })
  await twin.settle('the oldest Machine is deleted', counts(2, 'MachineDeleting', 1))
}

/** The preflight checks of the MachineSet fail, because the control plane is upgrading. */
const preflightFails: Case = async (twin) => {
  const upgrading = { initialization: { controlPlaneInitialized: true }, version: 'v1.34.0' }
  await createUnhealthyMachines(twin, {
    maxInFlight: 1,
    replicas: 2,
    beforeResume: async () => {
      await pauseChecks(twin)
      await twin.setReports({ controlPlane: () => ({ spec: { version: 'v1.35.0' }, status: upgrading }) })
    },
  })
  await twin.settle('both Machines wait', counts(0, 'RemediationDeferred', 2))
  await twin.setReports({
    controlPlane: () => ({ spec: { version: 'v1.35.0' }, status: { ...upgrading, version: 'v1.35.0' } }),
  })
  await twin.settle('the newest Machine is deleted', counts(1, 'RemediationDeferred', 1))
}

/** The Nodes become ready while one Machine waits for remediation. */
const recovers: Case = async (twin) => {
  await createUnhealthyMachines(twin, { maxInFlight: 1, replicas: 2 })
  await twin.settle('the oldest Machine waits', counts(1, 'RemediationDeferred', 1))
  await reportNodesReady(twin, 'True', 2)
  await twin.settle('the oldest Machine is healthy', counts(1, 'RemediationDeferred', 0))
}

/** A Machine of an old MachineSet becomes unhealthy during a rollout that does not proceed. */
const duringRollout: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 2, ...machineNaming('a') }))
  await twin.settle('two Machines run')
  await twin.setReports({ machine: noReport })
  await twin.patch(MachineDeployment, 'md', { spec: { ...version('v1.35.1'), ...machineNaming('b') } })
  await twin.settle('the new Machine is not provisioned', (objects) => machinesIn(objects).length === 3)
  const unhealthyNodeConditions = [{ type: 'Ready', status: 'False', timeoutSeconds: 0 }]
  await twin.create(
    MachineHealthCheck,
    healthCheck({ ...ofDeployment, checks: { nodeStartupTimeoutSeconds: 0, unhealthyNodeConditions } }) as never,
  )
  await twin.settle('the Machines are checked')
  await reportNodesReady(twin, 'False', 1)
  await twin.settle('a Machine of the old MachineSet is not remediated', counts(0, 'CannotBeRemediated', 1))
  await reportNodesReady(twin, 'True', 1)
  await twin.settle('the Machine is healthy again', counts(0, 'CannotBeRemediated', 0))
}

/** The deletion of an unhealthy Machine is denied. */
const denied: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md'))
  await twin.settle('one Machine runs')
  await twin.create(MachineHealthCheck, healthCheck(ofDeployment) as never)
  await twin.settle('the Machine is checked')
  await deny(twin, { group: 'cluster.x-k8s.io', resource: 'machines', operation: 'DELETE' })
  await reportNodesReady(twin, 'False', 1)
  await twin.settle('the deletion of the Machine is denied', counts(0, 'MachineDeleting', 1))
}

export const remediationCases: Cases = {
  'remediation-one-at-a-time': oneAtATime,
  'remediation-percentage': percentage,
  'remediation-none': noneInFlight,
  'remediation-marked-first': marked,
  'remediation-without-limit': withoutLimit,
  'remediation-deleted-by-user': deletedByUser,
  'remediation-preflight-fails': preflightFails,
  'remediation-recovers': recovers,
  'remediation-during-rollout': duringRollout,
  'remediation-denied': denied,
}
