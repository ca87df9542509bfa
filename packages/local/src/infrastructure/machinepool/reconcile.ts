/**
 * Reconciles LocalMachinePools: groups of identical LocalMachines, for which core creates Machines if `spec.machines` is true. In this file, a
 * machine is a LocalMachine, and a Machine is core's object.
 */
import {
  areReplicasManagedExternally,
  type Cluster,
  ClusterNameLabel,
  ConditionOrder,
  DeleteMachineAnnotation,
  labelValue,
  Machine,
  MachinePool,
  MachinePoolNameLabel,
  pausedCondition,
} from '@capstan/api'
import {
  type Index,
  mergeOutcomes,
  type Outcome,
  proceed,
  type ReconcileContext,
  reconcileObject,
  requeue,
  wait,
} from '@capstan/controller'
import {
  addFinalizer,
  equal,
  hasFinalizer,
  isControlledBy,
  isDeleting,
  isTrue,
  keyOf,
  type NewCondition,
  type ObjectKey,
  orAbsent,
  ownerReference,
  parseDuration,
  randomSuffix,
  removeFinalizer,
  smallest,
  summary,
  timeLeft,
} from '@capstan/kube'
import { LocalMachine } from '../../kinds/local-machine.ts'
import {
  LocalMachinePool,
  LocalMachinePoolConditions as Conditions,
  LocalMachinePoolFinalizer,
} from '../../kinds/local-machine-pool.ts'
import { labelledCluster, owningMachinePool } from '../../owner.ts'
import { type PhaseReport, reportConditions, significantFields } from '../../report-conditions.ts'
import { retryOutcome, failureAt, timeText, progress, reportTerminal } from '../../simulation.ts'
import { leastUsedDomain, planPool } from './plan.ts'

interface Scope {
  readonly object: LocalMachinePool
  readonly machinePool: MachinePool | undefined
  readonly cluster: Cluster | undefined
  conditions: readonly NewCondition[]
}

/** Reconciles one LocalMachinePool. May be called at any time, and any number of times. */
export const reconcileLocalMachinePool = (key: ObjectKey, io: ReconcileContext): Promise<Outcome> =>
  reconcileObject(key, io, {
    kind: LocalMachinePool,
    related: (object) => ({ machinePool: owningMachinePool(io.cache, object), cluster: labelledCluster(io.cache, object) }),
    skip(object, { machinePool, cluster }) {
      // Deletion continues without owner and Cluster, because the finalizer must be removed.
      if (isDeleting(object)) return undefined
      if (!machinePool) return wait('MachinePool to own this LocalMachinePool')
      return cluster ? undefined : wait(`Cluster ${machinePool.spec.clusterName} to exist`)
    },
    paused: (object, { cluster }) => pausedCondition(cluster, object),
    scope: (object, related): Scope => ({ object, ...related, conditions: [] }),
    phases: (object) => [
      async (scope) => {
        const { outcome, conditions } = isDeleting(object)
          ? await remove(object, io)
          : await provisionWithMachines(object, scope.machinePool!, scope.cluster!, io)
        scope.conditions = conditions
        return outcome
      },
    ],
    status({ object, cluster, conditions }) {
      reportConditions(object, withReady(conditions), cluster, io)
      return proceed()
    },
    significantFields,
    conditions: Object.keys(Conditions),
    order: ConditionOrder,
    observesGeneration: false,
  })

/** Provisions the pool, and then its machines. */
async function provisionWithMachines(
  pool: LocalMachinePool,
  machinePool: MachinePool,
  cluster: Cluster,
  io: ReconcileContext,
): Promise<PhaseReport> {
  // The finalizer for the deletion of machines must be stored before machines are created.
  const isFinalizerStored = hasFinalizer(pool, LocalMachinePoolFinalizer)
  addFinalizer(pool, LocalMachinePoolFinalizer)
  const provisioned = provision(pool, cluster, io.clock.now())
  const isProvisioned = isFinalizerStored && pool.status?.initialization?.provisioned
  const machines = isProvisioned ? await syncMachines(pool, machinePool, io) : undefined
  return {
    outcome: mergeOutcomes([provisioned.outcome, ...(machines ? [machines.outcome] : [])]),
    conditions: [...provisioned.conditions, ...(machines?.conditions ?? []), Conditions.Deleting.false('NotDeleting')],
  }
}

/** Writes to the draft the state that the simulated pool, without its machines, has at the time `now`. Has no other effects. */
function provision(pool: LocalMachinePool, cluster: Cluster, now: number): PhaseReport {
  const { Provisioned } = Conditions
  const status = (pool.status ??= {})
  if (status.initialization?.provisioned) return { outcome: proceed(), conditions: [Provisioned.true('Provisioned')] }
  if (!cluster.status?.initialization?.infrastructureProvisioned) {
    const message = 'Waiting for Cluster status.initialization.infrastructureProvisioned to be true'
    return { outcome: wait(message), conditions: [Provisioned.false('WaitingForClusterInfrastructure', message)] }
  }
  status.timeline ??= {}
  status.timeline.provisioningStarted ??= timeText(now)
  const simulated = pool.spec?.simulated
  const step = progress(Date.parse(status.timeline.provisioningStarted), now, {
    delay: simulated?.provisioningDelay,
    failure: failureAt(simulated?.failure, 'provisioning'),
  })
  if (step.state === 'running') {
    const outcome = requeue(step.until - now, 'pool to be provisioned')
    return { outcome, conditions: [Provisioned.false('Provisioning', 'Pool is being provisioned')] }
  }
  if (step.state === 'failed') {
    reportTerminal(status, simulated?.failure)
    const outcome = retryOutcome(step.retryAt, now, 'failed provisioning')
    return { outcome, conditions: [Provisioned.false('ProvisioningFailed', step.message)] }
  }
  const { namespace, name } = pool.metadata
  pool.spec = { ...pool.spec, providerID: pool.spec?.providerID ?? `local-pool:////${namespace}/${name}` }
  status.initialization = { provisioned: true }
  status.ready = true
  return { outcome: proceed(), conditions: [Provisioned.true('Provisioned')] }
}

/**
 * Performs one step towards the wanted number of machines with the current template, and reports the existing machines. Also deletes the
 * machines in `simulated.lost`, and Machines without infrastructure.
 */
async function syncMachines(pool: LocalMachinePool, machinePool: MachinePool, io: ReconcileContext): Promise<PhaseReport> {
  const replicas = await syncReplicas(pool, machinePool, io)
  const machines = io.cache.byIndex(byPool, poolText(pool))
  const reportOutcome = reportMachines(pool, machines, io.clock.now())
  await deleteLost(pool, machines, io)
  await deleteOrphans(machinePool, machines, io)

  const { dataSecretName } = machinePool.spec.template.spec.bootstrap
  if (!dataSecretName) {
    const message = 'Waiting for MachinePool spec.template.spec.bootstrap.dataSecretName to be set'
    return { outcome: wait(message), conditions: [Conditions.MachinesReady.false('WaitingForBootstrapData', message)] }
  }
  const step = planPool(
    machines.map((machine) => ({
      name: machine.metadata.name,
      isOutdated: isOutdated(machine, pool, machinePool),
      isReady: isTrue(machine, 'Ready'),
      isDeleting: isBeingDeleted(machine, io),
      isMarked: machineOf(machine, io)?.metadata.annotations?.[DeleteMachineAnnotation] !== undefined,
      created: Date.parse(machine.metadata.creationTimestamp),
    })),
    replicas,
  )
  const used = machines.map(({ spec }) => spec?.pool?.failureDomain)
  for (let created = 0; created < Math.min(step.create, MaxCreations); created++) {
    const failureDomain = leastUsedDomain(machinePool.spec.failureDomains ?? [], used)
    used.push(failureDomain)
    await createMachine(pool, machinePool, { dataSecretName, failureDomain }, io)
  }
  for (const machine of machines) if (step.remove.includes(machine.metadata.name)) await removeMachine(machine, io)

  const ready = machines.filter((machine) => isTrue(machine, 'Ready')).length
  const condition =
    ready === replicas && machines.length === replicas
      ? Conditions.MachinesReady.true('Ready')
      : Conditions.MachinesReady.false('NotReady', `${ready} of ${replicas} machines are ready; ${machines.length} exist`)
  return { outcome: reportOutcome, conditions: [condition] }
}

/** Maximum number of machines that one reconcile creates. Their watch events trigger the next reconcile. */
const MaxCreations = 50

/** Returns the wanted replicas. When the simulated autoscaler of the pool determines them, writes them to the MachinePool. */
async function syncReplicas(pool: LocalMachinePool, machinePool: MachinePool, io: ReconcileContext): Promise<number> {
  const { replicas = 1 } = machinePool.spec
  const simulatedReplicas = pool.spec?.simulated?.replicas
  if (simulatedReplicas === undefined || !areReplicasManagedExternally(machinePool)) return replicas
  if (simulatedReplicas !== replicas) {
    await io.client.patch(MachinePool, keyOf(machinePool), { type: 'merge', body: { spec: { replicas: simulatedReplicas } } })
  }
  return simulatedReplicas
}

/**
 * Writes to the draft the fields of the contract that report machines (provider IDs, replicas, and the kind if core creates Machines), and
 * `status.instances`. Returns a requeue if provider IDs are delayed.
 */
function reportMachines(pool: LocalMachinePool, machines: readonly LocalMachine[], now: number): Outcome {
  const { listDelay, ghosts = [] } = pool.spec?.simulated ?? {}
  const delay = listDelay === undefined ? 0 : parseDuration(listDelay)
  const listedAt = ({ status }: LocalMachine) =>
    now + timeLeft({ since: Date.parse(status?.timeline?.provisioned ?? ''), length: delay, now })
  // A machine that is being deleted is listed until it is removed, because its Node is drained first.
  const ids = machines.flatMap((machine) => (listedAt(machine) <= now && machine.spec?.providerID) || [])
  pool.spec = { ...pool.spec, providerIDList: [...ids, ...ghosts] }
  const status = (pool.status ??= {})
  status.replicas = machines.length
  if (pool.spec.machines) status.infrastructureMachineKind = LocalMachine.kind
  status.instances = machines.map((machine) => ({
    instanceName: machine.metadata.name,
    ...(machine.spec?.providerID === undefined ? {} : { providerID: machine.spec.providerID }),
    ...(machine.spec?.pool?.version === undefined ? {} : { version: machine.spec.pool.version }),
    ...(machine.spec?.pool?.failureDomain === undefined ? {} : { failureDomain: machine.spec.pool.failureDomain }),
    ready: isTrue(machine, 'Ready'),
  }))
  const next = smallest(machines.map(listedAt).filter((at) => at > now))
  return next === Infinity ? proceed() : requeue(next - now, 'delayed provider IDs')
}

const isOutdated = ({ spec }: LocalMachine, pool: LocalMachinePool, machinePool: MachinePool): boolean =>
  spec?.pool?.version !== machinePool.spec.template.spec.version || !equal(spec?.simulated, pool.spec?.template?.simulated)

async function createMachine(
  pool: LocalMachinePool,
  machinePool: MachinePool,
  { dataSecretName, failureDomain }: { readonly dataSecretName: string; readonly failureDomain: string | undefined },
  io: ReconcileContext,
): Promise<void> {
  const { version } = machinePool.spec.template.spec
  const simulated = pool.spec?.template?.simulated
  await io.client.create(LocalMachine, {
    metadata: {
      name: `${pool.metadata.name}-${randomSuffix(io.random)}`,
      namespace: pool.metadata.namespace!,
      // By the contract, core finds the machines of the pool by these labels.
      labels: {
        [ClusterNameLabel]: machinePool.spec.clusterName,
        [MachinePoolNameLabel]: labelValue(machinePool.metadata.name),
      },
      // The pool is not the controller: core may create a Machine, which becomes the controller.
      ownerReferences: [ownerReference(pool, LocalMachinePool)],
    },
    spec: {
      ...(simulated ? { simulated } : {}),
      pool: { dataSecretName, ...(version ? { version } : {}), ...(failureDomain ? { failureDomain } : {}) },
    },
  })
}

/** Deletes a LocalMachine. If core has created a Machine for it, deletes the Machine instead, so that core drains the Node first. */
async function removeMachine(machine: LocalMachine, io: ReconcileContext): Promise<void> {
  const coreMachine = machineOf(machine, io)
  if (coreMachine)
    await orAbsent(io.client.delete(Machine, keyOf(coreMachine), { preconditions: { uid: coreMachine.metadata.uid } }))
  else await orAbsent(io.client.delete(LocalMachine, keyOf(machine), { preconditions: { uid: machine.metadata.uid } }))
}

/** Deletes the LocalMachines in `simulated.lost` directly, and thus without a drain of their Nodes. */
async function deleteLost(pool: LocalMachinePool, machines: readonly LocalMachine[], io: ReconcileContext): Promise<void> {
  const lostNames = pool.spec?.simulated?.lost ?? []
  for (const machine of machines) {
    if (lostNames.includes(machine.metadata.name) && !isDeleting(machine))
      await orAbsent(io.client.delete(LocalMachine, keyOf(machine)))
  }
}

/** Deletes Machines without infrastructure. By the contract, the provider deletes them, not core. */
async function deleteOrphans(machinePool: MachinePool, machines: readonly LocalMachine[], io: ReconcileContext): Promise<void> {
  const names = new Set(machines.map(({ metadata }) => metadata.name))
  for (const coreMachine of io.cache.byIndex(machinesByMachinePool, keyOfMachinePool(machinePool))) {
    const { name } = coreMachine.spec.infrastructureRef
    if (names.has(name) || isDeleting(coreMachine) || !isControlledBy(coreMachine, machinePool, MachinePool)) continue
    const key = { namespace: coreMachine.metadata.namespace!, name }
    if (await orAbsent(io.client.get(LocalMachine, key))) continue
    await orAbsent(io.client.delete(Machine, keyOf(coreMachine), { preconditions: { uid: coreMachine.metadata.uid } }))
  }
}

/** Deletes all machines, and then removes the finalizer of the pool. */
async function remove(pool: LocalMachinePool, io: ReconcileContext): Promise<PhaseReport> {
  const machines = io.cache.byIndex(byPool, poolText(pool))
  if (machines.length === 0) {
    removeFinalizer(pool, LocalMachinePoolFinalizer)
    return { outcome: proceed(), conditions: [] }
  }
  for (const machine of machines) if (!isBeingDeleted(machine, io)) await removeMachine(machine, io)
  const message = `${machines.length} machines are being deleted`
  return { outcome: wait(message), conditions: [Conditions.Deleting.true('Deleting', message)] }
}

/** Returns the Machine that core has created for a LocalMachine, if any. */
const machineOf = ({ metadata }: LocalMachine, { cache }: ReconcileContext): Machine | undefined =>
  metadata.ownerReferences?.some(({ kind, controller }) => kind === Machine.kind && controller)
    ? cache.peek(Machine, { namespace: metadata.namespace!, name: metadata.name })
    : undefined

const isBeingDeleted = (machine: LocalMachine, io: ReconcileContext): boolean => {
  const coreMachine = machineOf(machine, io)
  return isDeleting(machine) || (coreMachine !== undefined && isDeleting(coreMachine))
}

/** Adds the Ready condition, which summarizes the other conditions. */
function withReady(conditions: readonly NewCondition[]): readonly NewCondition[] {
  if (conditions.length === 0) return []
  const ready = summary(conditions, Conditions.Ready, {
    of: ['Deleting', 'Provisioned', 'MachinesReady'],
    negative: ['Deleting'],
    ignoreIfMissing: ['Provisioned', 'MachinesReady'],
    reasons: { issue: 'NotReady', unknown: 'NotReady', info: 'Ready' },
  })
  return [ready, ...conditions]
}

const poolText = ({ metadata }: LocalMachinePool): string => `${metadata.namespace}/${metadata.name}`

/** Index of LocalMachines by the pool that has created them. */
const byPool: Index<LocalMachine> = {
  name: 'localmachines by pool',
  kind: LocalMachine,
  values: ({ metadata }) =>
    (metadata.ownerReferences ?? []).flatMap(({ kind, name }) =>
      kind === LocalMachinePool.kind ? [`${metadata.namespace}/${name}`] : [],
    ),
}

/** Returns the key of a MachinePool in the index `machinesByMachinePool`. */
const keyOfMachinePool = ({ metadata, spec }: MachinePool): string =>
  `${metadata.namespace}/${spec.clusterName}/${labelValue(metadata.name)}`

/** Index of Machines by their Cluster and the MachinePool that their label names. */
const machinesByMachinePool: Index<Machine> = {
  name: 'machines by pool',
  kind: Machine,
  values({ metadata, spec }) {
    const name = metadata.labels?.[MachinePoolNameLabel]
    return name === undefined ? [] : [`${metadata.namespace}/${spec.clusterName}/${name}`]
  },
}
