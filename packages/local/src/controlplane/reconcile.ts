/** LocalControlPlane: certificates, kubeconfig and Machines of one control plane. The phases, in order, are in `bringUp` and `remove`. */
import {
  Cluster,
  ClusterTopologyUpgradeStepAnnotation,
  ConditionOrder,
  DeleteMachineAnnotation,
  isPaused,
  Machine,
  MachineControlPlaneLabel,
  pausedCondition,
} from '@capstan/api'
import { commitChanges, type Outcome, proceed, type ReconcileContext, requeue, wait } from '@capstan/controller'
import {
  addFinalizer,
  ConfigMap,
  controllerOf,
  draft,
  ensureOwnerReference,
  isControlledBy,
  isDeleting,
  keyOf,
  type ObjectKey,
  orAbsent,
  ownerReference,
  removeFinalizer,
  setConditions,
} from '@capstan/kube'
import {
  LocalControlPlane,
  LocalControlPlaneConditions as Conditions,
  LocalControlPlaneFinalizer,
} from '../kinds/local-control-plane.ts'
import { byCluster, owningCluster } from '../owner.ts'
import { again, failureAt, instant, progress } from '../simulation.ts'
import { KubeadmConfigKey, recordVersion } from '../workload/basics.ts'
import type { Workloads } from '../workload/workloads.ts'
import { ensureCertificates } from './certificates.ts'
import { ensureKubeconfig } from './kubeconfig.ts'
import { createMachine, referencedKind, syncMachine } from './machines.ts'
import { planStep, type PlannedMachine } from './plan.ts'
import type { ControlPlaneScope } from './scope.ts'
import { controlPlaneConditions, controlPlaneCounters, isHealthy } from './status.ts'

export interface LocalControlPlaneDependencies {
  readonly workloads: Pick<Workloads, 'clientFor'>
}

export const machinesByCluster = byCluster(Machine)
export const controlPlanesByTemplate = {
  name: 'localcontrolplanes by machine template',
  kind: LocalControlPlane,
  values: ({ metadata, spec }: LocalControlPlane): readonly string[] => {
    const { apiGroup, kind, name } = spec.machineTemplate.spec.infrastructureRef
    return [`${metadata.namespace}/${kind}.${apiGroup}/${name}`]
  },
}

/** Brings one LocalControlPlane towards its spec. Safe to run at any moment, any number of times. */
export async function reconcileLocalControlPlane(
  key: ObjectKey,
  io: ReconcileContext,
  of: LocalControlPlaneDependencies,
): Promise<Outcome> {
  const found = io.cache.peek(LocalControlPlane, key)
  if (!found) return proceed()
  const cluster = owningCluster(io.cache, found)
  if (!cluster) return wait('Cluster to own this LocalControlPlane')
  if (isPaused(cluster, found)) {
    await commit(found, draft(found), [pausedCondition(cluster, found)], io)
    return wait('reconciliation to be unpaused')
  }
  const before = await ensureFinalizer(found, io)

  const scope: ControlPlaneScope = {
    controlPlane: draft(before),
    cluster,
    machines: [],
    workers: [],
    certificates: { state: 'unread' },
    template: { state: 'unread' },
    initializationIssue: undefined,
    step: undefined,
    failed: false,
    deletion: 'none',
  }
  let outcome: Outcome = proceed()
  let failure: unknown
  try {
    outcome = isDeleting(before) ? await remove(scope, io) : await bringUp(scope, io, of)
  } catch (err) {
    failure = err
    scope.failed = true
    if (isDeleting(before)) scope.deletion = 'failed'
  }

  // Status is written even when a phase failed: it is how a user learns that one did.
  const { controlPlane } = scope
  controlPlane.status = {
    ...controlPlane.status,
    ...controlPlaneCounters(scope),
    ...(failure === undefined && before.metadata.generation ? { observedGeneration: before.metadata.generation } : {}),
  }
  await commit(before, controlPlane, [...controlPlaneConditions(scope), pausedCondition(cluster, before)], io)
  if (failure !== undefined) throw failure
  return outcome
}

async function commit(
  before: LocalControlPlane,
  after: LocalControlPlane,
  conditions: Parameters<typeof setConditions>[1],
  io: ReconcileContext,
): Promise<void> {
  after.status = {
    ...after.status,
    conditions: setConditions(after.status?.conditions, conditions, {
      now: io.clock.now(),
      generation: before.metadata.generation,
      order: ConditionOrder,
    }),
  }
  await commitChanges(io.client, LocalControlPlane, before, after, { conditions: Object.keys(Conditions), signal: io.signal })
}

/** Nothing is made before the finalizer is stored that will see to its end. */
async function ensureFinalizer(found: LocalControlPlane, io: ReconcileContext): Promise<LocalControlPlane> {
  const object = draft(found)
  if (!addFinalizer(object, LocalControlPlaneFinalizer)) return found
  return commitChanges(io.client, LocalControlPlane, found, object, { conditions: [], signal: io.signal })
}

/** Certificates, kubeconfig, then one step towards the Machines that are wanted. */
async function bringUp(
  scope: ControlPlaneScope,
  io: ReconcileContext,
  { workloads }: LocalControlPlaneDependencies,
): Promise<Outcome> {
  const { controlPlane, cluster } = scope
  observeMachines(scope, io)
  await observeTemplate(scope, io)
  if (!cluster.status?.initialization?.infrastructureProvisioned) {
    return wait('Cluster status.initialization.infrastructureProvisioned to be true')
  }
  scope.certificates = await ensureCertificates(controlPlane, cluster, io)
  const { host, port } = cluster.spec.controlPlaneEndpoint ?? {}
  if (!host || !port) return wait('Cluster spec.controlPlaneEndpoint to be set')
  if (scope.certificates.state === 'available') await ensureKubeconfig(controlPlane, cluster, scope.certificates.authority, io)

  const evaluated: { machine: Machine; outdated: string[] }[] = []
  for (const { machine } of scope.machines) evaluated.push({ machine, outdated: await syncMachine(scope, machine, io) })
  scope.machines = evaluated

  const initialized = await initialize(scope, io, workloads)
  const workload = workloads.clientFor(keyOf(cluster))
  if (workload && scope.machines.some(({ outdated }) => outdated.length > 0))
    await recordVersion(workload, controlPlane.spec.version)
  await takeStep(scope, io)
  return nextLook(scope, initialized, io.clock.now())
}

/** Control plane Machines of the cluster, oldest first. @throws when some belong to another control plane */
function observeMachines(scope: ControlPlaneScope, io: ReconcileContext): void {
  const { controlPlane, cluster } = scope
  const all = io.cache.byIndex(machinesByCluster, `${cluster.metadata.namespace}/${cluster.metadata.name}`)
  const isControlPlane = ({ metadata }: Machine) => metadata.labels?.[MachineControlPlaneLabel] !== undefined
  const machines = all.filter(isControlPlane).sort(byAge)
  scope.workers = all.filter((machine) => !isControlPlane(machine)).map(({ metadata }) => metadata.name)
  scope.machines = machines.map((machine) => ({ machine, outdated: [] }))
  if (machines.some((machine) => controllerOf(machine) && !isControlledBy(machine, controlPlane, LocalControlPlane))) {
    throw new Error(
      'not all control plane machines are owned by this LocalControlPlane, refusing to operate in mixed management mode',
    )
  }
}

const byAge = ({ metadata: a }: Machine, { metadata: b }: Machine): number =>
  a.creationTimestamp === b.creationTimestamp ? (a.name < b.name ? -1 : 1) : a.creationTimestamp < b.creationTimestamp ? -1 : 1

/** The machine template; the Cluster owns it too, so that it goes and moves with it. */
async function observeTemplate(scope: ControlPlaneScope, io: ReconcileContext): Promise<void> {
  const { controlPlane, cluster } = scope
  const ref = controlPlane.spec.machineTemplate.spec.infrastructureRef
  const kind = referencedKind(ref, io)
  await io.watch(kind, ({ metadata }, cache) =>
    cache.byIndex(controlPlanesByTemplate, `${metadata.namespace}/${kind.kind}.${kind.group}/${metadata.name}`).map(keyOf),
  )
  const found = io.cache.peek(kind, { namespace: controlPlane.metadata.namespace!, name: ref.name })
  if (!found) {
    scope.template = { state: 'missing' }
    return
  }
  const object = draft(found)
  if (!isDeleting(found)) ensureOwnerReference(object, ownerReference(cluster, Cluster))
  scope.template = {
    state: 'found',
    object: await commitChanges(io.client, kind, found, object, { conditions: [], signal: io.signal }),
  }
}

/** Reports the control plane initialized once its API server answers. Never taken back. */
async function initialize(
  scope: ControlPlaneScope,
  io: ReconcileContext,
  workloads: Pick<Workloads, 'clientFor'>,
): Promise<Outcome> {
  const { controlPlane, cluster } = scope
  const status = (controlPlane.status ??= {})
  if (status.initialization?.controlPlaneInitialized) return proceed()
  const workload = workloads.clientFor(keyOf(cluster))
  // Upstream: the ConfigMap that kubeadm writes last tells that the first control plane machine is through.
  if (!workload || !(await orAbsent(workload.get(ConfigMap, KubeadmConfigKey)))) return wait('API server to be reachable')
  const now = io.clock.now()
  status.timeline ??= {}
  status.timeline.apiServerReached ??= instant(now)
  const simulated = controlPlane.spec.simulated
  const step = progress(Date.parse(status.timeline.apiServerReached), now, {
    delay: simulated?.initializationDelay,
    failure: failureAt(simulated?.failure, 'initialization'),
  })
  if (step.state === 'running') return requeue(step.until - now, 'control plane to be initialized')
  if (step.state === 'failed') {
    scope.initializationIssue = step.message
    return again(step.retryAt, now, 'failed initialization')
  }
  status.initialization = { controlPlaneInitialized: true }
  return proceed()
}

/** Plans the next step, and takes it. */
async function takeStep(scope: ControlPlaneScope, io: ReconcileContext): Promise<void> {
  const { controlPlane, cluster, machines, template } = scope
  const { spec } = controlPlane
  const domains = cluster.status?.failureDomains ?? []
  const step = planStep({
    replicas: spec.replicas ?? 1,
    maxSurge: spec.rollout?.strategy?.rollingUpdate?.maxSurge === 0 ? 0 : 1,
    machines: machines.map(plannedMachine),
    failureDomains: domains.filter((domain) => domain.controlPlane).map((domain) => domain.name),
    certificatesAvailable: scope.certificates.state === 'available',
    pendingVersion: pendingVersion(scope),
  })
  scope.step = step
  switch (step.kind) {
    case 'rest':
      return
    case 'hold':
      io.log.debug('Waiting before the next step', { reasons: step.messages })
      return
    case 'create': {
      // Certificates come first: a machine cannot boot without them. The condition says what is missing.
      if (scope.certificates.state !== 'available' || template.state !== 'found') return
      io.log.info('Creating control plane Machine', { reason: step.reason, failureDomain: step.failureDomain })
      try {
        const machine = await createMachine(scope, template.object, step.failureDomain, io)
        scope.machines = [...machines, { machine, outdated: [] }]
      } catch (err) {
        const reason = machines.length === 0 ? 'FailedInitialization' : 'FailedScaleUp'
        io.events.event(
          controlPlane,
          'Warning',
          reason,
          `Failed to create control plane Machine for cluster ${cluster.metadata.namespace}/${cluster.metadata.name} control plane: ${(err as Error).message}`,
        )
        throw err
      }
      return
    }
    case 'delete': {
      const chosen = machines.find(({ machine }) => machine.metadata.name === step.machine)!
      io.log.info('Deleting control plane Machine', { Machine: step.machine, reason: step.reason })
      await io.client.delete(Machine, keyOf(chosen.machine), { preconditions: { uid: chosen.machine.metadata.uid } })
    }
  }
}

const plannedMachine = ({ machine, outdated }: ControlPlaneScope['machines'][number]): PlannedMachine => ({
  name: machine.metadata.name,
  created: machine.metadata.creationTimestamp,
  failureDomain: machine.status?.failureDomain ?? machine.spec.failureDomain,
  deleting: isDeleting(machine),
  healthy: isHealthy(machine),
  outdated,
  deleteFirst: machine.metadata.annotations?.[DeleteMachineAnnotation] !== undefined,
})

/** The version of the topology while it has not come down to this control plane: no step may be taken in between. */
function pendingVersion({ controlPlane, cluster }: ControlPlaneScope): string | undefined {
  const wanted = cluster.spec.topology?.version
  const { version } = controlPlane.spec
  if (wanted === undefined || wanted === version) return undefined
  return cluster.metadata.annotations?.[ClusterTopologyUpgradeStepAnnotation] === version ? undefined : wanted
}

/** What brings this control plane back when no event does. */
function nextLook({ controlPlane, step, template }: ControlPlaneScope, initialized: Outcome, now: number): Outcome {
  if (template.state === 'missing') return wait('machine template to exist')
  if (initialized.kind !== 'proceed') return initialized
  if (step?.kind === 'hold') return wait(step.messages.join('; '))
  const after = Date.parse(controlPlane.spec.rollout?.after ?? '')
  return after >= now ? requeue(after - now + 1, 'spec.rollout.after') : proceed()
}

/** Deletes all Machines once no worker needs the control plane any more. */
async function remove(scope: ControlPlaneScope, io: ReconcileContext): Promise<Outcome> {
  const { controlPlane, cluster } = scope
  observeMachines(scope, io)
  scope.certificates = await ensureCertificates(controlPlane, cluster, io)
  if (scope.machines.length === 0) {
    scope.deletion = 'completed'
    removeFinalizer(controlPlane, LocalControlPlaneFinalizer)
    return proceed()
  }
  if (scope.workers.length > 0) {
    scope.deletion = 'waiting for workers'
    return wait(`Machines to be deleted: ${scope.workers.join(', ')}`)
  }
  scope.deletion = 'waiting for machines'
  for (const { machine } of scope.machines) {
    if (isDeleting(machine)) continue
    await io.client.delete(Machine, keyOf(machine), { preconditions: { uid: machine.metadata.uid } })
  }
  return wait('control plane Machines to be deleted')
}
