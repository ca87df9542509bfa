/** Brings the topology of one Cluster towards what its spec and its class say. */
import {
  AfterClusterUpgrade,
  AfterControlPlaneInitialized,
  AfterControlPlaneUpgrade,
  BeforeClusterCreate,
  BeforeClusterDelete,
  BeforeClusterUpgrade,
  Cluster,
  type ClusterClass,
  ClusterConditions,
  ClusterNameLabel,
  ClusterTopologyDeferUpgradeAnnotation,
  ClusterTopologyHoldUpgradeSequenceAnnotation,
  ClusterTopologyOwnedLabel,
  ClusterTopologyUpgradeConcurrencyAnnotation,
  ClusterTopologyUpgradeStepAnnotation,
  ConditionOrder,
  ControlPlaneContract,
  isPaused,
  isProvisioning,
  isUpgrading,
  OkToDeleteAnnotation,
  readField,
} from '@capstan/api'
import { commitChanges, mergeOutcomes, type Outcome, proceed, type ReconcileContext, requeue, wait } from '@capstan/controller'
import {
  draft,
  invalidObject,
  isDeleting,
  isTrue,
  keyOf,
  type ObjectKey,
  orAbsent,
  seconds,
  setConditions,
  TerminalError,
} from '@capstan/kube'
import { applyControlPlane, applyInfrastructureCluster, applyMachineDeployments, type Applier } from './apply.ts'
import { type Blueprint, NotReadyYet, observeBlueprint, observeClass } from './blueprint.ts'
import { type CurrentState, observeCurrentState } from './current-state.ts'
import { type DesiredState, type DesiredVersions, desiredState, leaveEndpointToOthers, refToDesired } from './desired-state.ts'
import type { AppliedObjects } from './differences.ts'
import { type BlockingHook, heldByAnnotation, type HookAnswer, type LifecycleHooks } from './lifecycle-hooks.ts'
import { applyPatches } from './patches.ts'
import { changeCluster, type ClusterChange, pendingHooks } from './pending-hooks.ts'
import { topologyReconciled, type UpgradeReport } from './topology-reconciled.ts'
import { unsupportedParts } from './unsupported.ts'
import {
  controlPlaneVersion,
  type ControlPlaneVersion,
  upgradeIsOver,
  type UpgradeFacts,
  type UpgradeHook,
  type WorkerVersion,
  workerVersions,
} from './upgrade.ts'
import { type UpgradePlan, upgradePlan } from './upgrade-plan.ts'
import { checkedVariables } from './variables.ts'

/** What lives longer than one pass. */
export interface TopologyMemory {
  readonly hooks: LifecycleHooks
  readonly applied: AppliedObjects
  /** Clusters, by uid, that AfterControlPlaneInitialized was told of while its mark could not be removed yet. */
  readonly told: Set<string>
}

/** One pass: what it works with, and what it has learned so far. */
class Pass {
  /** As last read or answered. */
  cluster: Cluster
  readonly context: ReconcileContext
  readonly memory: TopologyMemory
  readonly blocking: BlockingHook[] = []
  upgrade: UpgradeReport | undefined

  constructor(cluster: Cluster, context: ReconcileContext, memory: TopologyMemory) {
    this.cluster = cluster
    this.context = context
    this.memory = memory
  }

  async change(change: ClusterChange): Promise<void> {
    this.cluster = await changeCluster(this.context.client, this.cluster, change, this.context.signal)
  }

  /** Notes an answer. True when the hook lets go. */
  passes(answer: HookAnswer): boolean {
    if (answer.kind === 'go') return true
    this.blocking.push(answer)
    return false
  }
}

/** Safe to run at any moment, any number of times. */
export async function reconcileTopology(key: ObjectKey, context: ReconcileContext, memory: TopologyMemory): Promise<Outcome> {
  const cluster = context.cache.peek(Cluster, key)
  if (!cluster?.spec.topology) return proceed()
  const paused = isPaused(cluster, cluster)
  if (!paused && !memory.hooks.ready) return requeue(seconds(1), 'Runtime Extensions are still being discovered')

  const pass = new Pass(cluster, context, memory)
  let error: unknown
  try {
    if (isDeleting(cluster) && !paused) await allowDeletion(pass)
    else if (!paused) await settle(pass)
  } catch (err) {
    error = err
  }
  await report(pass, paused, error)
  if (error instanceof NotReadyYet) return wait(error.message)
  if (error !== undefined) throw error
  return mergeOutcomes(pass.blocking.map(({ hook, retryAfter }) => requeue(retryAfter, `${hook} blocks`)))
}

/** Lets the Cluster controller delete what it owns once BeforeClusterDelete does. */
async function allowDeletion(pass: Pass): Promise<void> {
  const { cluster, context, memory } = pass
  if (cluster.metadata.annotations?.[OkToDeleteAnnotation] !== undefined) return
  if (!pass.passes(await memory.hooks.call(BeforeClusterDelete, cluster, {}, context.signal))) return
  await pass.change({ annotations: { [OkToDeleteAnnotation]: '' } })
}

async function settle(pass: Pass): Promise<void> {
  const { context, memory } = pass
  const clusterClass = await observeClass(pass.cluster, context)
  const cluster = decided(() => checkedCluster(pass.cluster, clusterClass))

  const blueprint = await observeBlueprint(cluster.spec.topology!, clusterClass, context)
  const current = await observeCurrentState(cluster, blueprint, context)
  if (!isCreated(cluster) && !pass.passes(await memory.hooks.call(BeforeClusterCreate, cluster, {}, context.signal))) return

  const decision = await decideVersions(pass, cluster, blueprint, current)
  const { controlPlane, workers } = decision
  const desired = decided(() => patchedState(cluster, blueprint, current, { controlPlane: controlPlane.version, workers }))

  const untold = await afterHooks(pass, cluster, decision)
  await applyState(pass, desired, current, decision)
  if (untold !== undefined) throw untold
}

const isCreated = ({ spec }: Cluster): boolean => spec.infrastructureRef !== undefined || spec.controlPlaneRef !== undefined

/** What the same objects will always give: everything that could change it is watched, so nobody needs to try again. */
function decided<T>(decide: () => T): T {
  try {
    return decide()
  } catch (err) {
    throw new TerminalError((err as Error).message, { cause: err })
  }
}

function checkedCluster(cluster: Cluster, clusterClass: ClusterClass): Cluster {
  const unsupported = unsupportedParts(cluster, clusterClass)
  if (unsupported.length > 0) throw invalidObject(Cluster, cluster.metadata.name, unsupported)
  return checkedVariables(cluster, clusterClass)
}

function patchedState(cluster: Cluster, blueprint: Blueprint, current: CurrentState, versions: DesiredVersions): DesiredState {
  try {
    const desired = desiredState(cluster, blueprint, current, versions)
    applyPatches(cluster, blueprint, desired)
    leaveEndpointToOthers(desired)
    return desired
  } catch (err) {
    throw new Error(`error computing the desired state of the Cluster topology: ${(err as Error).message}`, { cause: err })
  }
}

interface Decision {
  readonly facts: UpgradeFacts
  readonly plan: UpgradePlan
  readonly controlPlane: ControlPlaneVersion
  readonly workers: readonly WorkerVersion[]
}

/** Decides who has which version after this pass, and asks the hooks that have a say in it. */
async function decideVersions(pass: Pass, cluster: Cluster, blueprint: Blueprint, current: CurrentState): Promise<Decision> {
  const plan = decided(() => planOf(cluster, blueprint, current))
  const answers = new Map<UpgradeHook, 'go' | 'blocked'>()
  for (;;) {
    const facts = upgradeFacts(pass.cluster, cluster, current, plan, answers)
    const controlPlane = decided(() => controlPlaneVersion(facts))
    if (controlPlane.kind === 'version') {
      const workers = decided(() =>
        workerVersions(facts, controlPlane, workerTopologies(blueprint, current), upgradeConcurrency(cluster)),
      )
      pass.upgrade = {
        controlPlaneKind: (current.controlPlane?.kind ?? blueprint.controlPlane.template.kind).kind,
        controlPlane,
        plan,
        workers: workers.map((worker) => {
          const object = current.machineDeployments.get(worker.name)?.object
          return { ...worker, objectName: object?.metadata.name ?? worker.name }
        }),
      }
      return { facts, plan, controlPlane, workers }
    }
    const goes = pass.passes(await askUpgradeHook(pass, cluster, controlPlane.hook, facts))
    answers.set(controlPlane.hook, goes ? 'go' : 'blocked')
    if (goes && controlPlane.hook === 'AfterControlPlaneUpgrade') await pass.change({ remove: [controlPlane.hook] })
  }
}

async function askUpgradeHook(
  pass: Pass,
  cluster: Cluster,
  hook: UpgradeHook,
  { controlPlane, desired, plan }: UpgradeFacts,
): Promise<HookAnswer> {
  const { hooks } = pass.memory
  const { signal } = pass.context
  const version = controlPlane?.version ?? desired
  const steps = {
    ...(plan.controlPlane.length > 0 ? { controlPlaneUpgrades: plan.controlPlane.map((step) => ({ version: step })) } : {}),
    ...(plan.workers.length > 0 ? { workersUpgrades: plan.workers.map((step) => ({ version: step })) } : {}),
  }
  switch (hook) {
    case 'BeforeClusterUpgrade': {
      const held = heldByAnnotation(cluster)
      if (held) return { kind: 'blocked', ...held }
      const versions = { fromKubernetesVersion: version, toKubernetesVersion: desired }
      return hooks.call(BeforeClusterUpgrade, cluster, { ...versions, ...steps }, signal)
    }
    case 'AfterControlPlaneUpgrade':
      return hooks.call(AfterControlPlaneUpgrade, cluster, { kubernetesVersion: version, ...steps }, signal)
    case 'AfterClusterUpgrade':
      return hooks.call(AfterClusterUpgrade, cluster, { kubernetesVersion: desired }, signal)
  }
}

function planOf(
  cluster: Cluster,
  { class: clusterClass }: Blueprint,
  { controlPlane, machineDeployments }: CurrentState,
): UpgradePlan {
  return upgradePlan({
    desired: cluster.spec.topology!.version,
    controlPlane: controlPlane && readField(controlPlane.object, ControlPlaneContract.version, controlPlane.contract),
    workers: [...machineDeployments.values()].flatMap(({ object }) => object.spec.template.spec.version ?? []),
    known: clusterClass.spec.kubernetesVersions ?? [],
  })
}

function upgradeFacts(
  marked: Cluster,
  cluster: Cluster,
  { controlPlane, machineDeployments }: CurrentState,
  plan: UpgradePlan,
  answers: UpgradeFacts['answers'],
): UpgradeFacts {
  return {
    desired: cluster.spec.topology!.version,
    plan,
    controlPlane: controlPlane && {
      version: readField(controlPlane.object, ControlPlaneContract.version, controlPlane.contract) ?? '',
      provisioning: isProvisioning(controlPlane.object, controlPlane.contract),
      upgrading: isUpgrading(controlPlane.object, controlPlane.contract),
    },
    anyWorkerUpgrading: [...machineDeployments.values()].some(({ upgrading }) => upgrading),
    pending: pendingHooks(marked),
    step: marked.metadata.annotations?.[ClusterTopologyUpgradeStepAnnotation],
    answers,
  }
}

const workerTopologies = ({ topology }: Blueprint, { machineDeployments }: CurrentState) =>
  (topology.workers?.machineDeployments ?? []).map(({ name, metadata }) => {
    const current = machineDeployments.get(name)
    return {
      name,
      current: current?.object.spec.template.spec.version,
      upgrading: current?.upgrading ?? false,
      defer: metadata?.annotations?.[ClusterTopologyDeferUpgradeAnnotation] !== undefined,
      hold: metadata?.annotations?.[ClusterTopologyHoldUpgradeSequenceAnnotation] !== undefined,
    }
  })

/** How many MachineDeployments may upgrade at once. Admission has refused what is no number. */
function upgradeConcurrency({ metadata }: Cluster): number {
  const given = Number(metadata.annotations?.[ClusterTopologyUpgradeConcurrencyAnnotation] ?? 1)
  return Number.isInteger(given) && given >= 1 ? given : 1
}

/**
 * Calls what is due after something has happened. AfterControlPlaneInitialized holds nothing up, not even when it fails: its
 * failure is given back, to be thrown when everything else is done.
 */
async function afterHooks(pass: Pass, cluster: Cluster, { facts, controlPlane, workers }: Decision): Promise<unknown> {
  let failure: unknown
  try {
    await tellControlPlaneInitialized(pass, cluster)
  } catch (err) {
    failure = err
  }
  if (facts.pending.has('AfterClusterUpgrade') && upgradeIsOver(facts, controlPlane, workers)) {
    const answer = await askUpgradeHook(pass, cluster, 'AfterClusterUpgrade', facts)
    if (pass.passes(answer)) {
      await pass.change({ remove: ['AfterClusterUpgrade'], annotations: { [ClusterTopologyUpgradeStepAnnotation]: null } })
    }
  }
  return failure
}

async function tellControlPlaneInitialized(pass: Pass, cluster: Cluster): Promise<void> {
  const { name } = AfterControlPlaneInitialized
  const { context, memory } = pass
  const { uid } = cluster.metadata
  if (!pendingHooks(cluster).has(name) || !isTrue(cluster, ClusterConditions.ControlPlaneInitialized.type)) return
  if (!memory.told.has(uid)) {
    // The server has the last word on whether this was told before: a copy of the Cluster may be old.
    const live = await context.client.get(Cluster, keyOf(cluster), { signal: context.signal })
    if (!pendingHooks(live).has(name)) return
    await memory.hooks.call(AfterControlPlaneInitialized, cluster, {}, context.signal)
    memory.told.add(uid)
  }
  await pass.change({ remove: [name] })
  memory.told.delete(uid)
}

/** Writes, in the order in which things refer to one another. */
async function applyState(
  pass: Pass,
  desired: DesiredState,
  current: CurrentState,
  { controlPlane, workers }: Decision,
): Promise<void> {
  const applier: Applier = { cluster: pass.cluster, context: pass.context, applied: pass.memory.applied }
  await applyInfrastructureCluster(applier, desired, current)

  if (controlPlane.state === 'starting') {
    // Marked before the version is taken: a stop in between must not lose what comes after. See startWasInterrupted.
    await pass.change({
      add: ['AfterClusterUpgrade', 'AfterControlPlaneUpgrade'],
      annotations: { [ClusterTopologyUpgradeStepAnnotation]: controlPlane.version },
    })
  }
  let failure: unknown
  if (!controlPlane.pending) {
    try {
      await applyControlPlane(applier, desired, current)
    } catch (err) {
      failure = err
    }
  }
  await connectCluster(pass, desired, failure === undefined)
  if (failure !== undefined) throw failure
  await applyMachineDeployments(applier, desired, current, workers)
}

/** Makes the Cluster refer to what was made for it. What could not be made yet is not referred to. */
async function connectCluster(
  pass: Pass,
  { infrastructureCluster, controlPlane }: DesiredState,
  controlPlaneExists: boolean,
): Promise<void> {
  const { cluster } = pass
  await pass.change({
    ...(isCreated(cluster) ? {} : { add: [AfterControlPlaneInitialized.name] }),
    labels: { [ClusterNameLabel]: cluster.metadata.name, [ClusterTopologyOwnedLabel]: '' },
    spec: {
      infrastructureRef: refToDesired(infrastructureCluster),
      ...(controlPlaneExists ? { controlPlaneRef: refToDesired(controlPlane) } : {}),
    },
  })
}

/** Tells the user: the condition, and the plan of an upgrade. */
async function report(pass: Pass, paused: boolean, error: unknown): Promise<void> {
  const { context, blocking, cluster: before, upgrade } = pass
  const after = draft(before)
  const status = (after.status ??= {})
  const condition = topologyReconciled({
    cluster: before,
    paused,
    error,
    blocking,
    upgradePending: pendingHooks(before).has('AfterClusterUpgrade'),
    upgrade,
  })
  status.conditions = setConditions(before.status?.conditions, [condition], {
    now: context.clock.now(),
    generation: before.metadata.generation,
    order: ConditionOrder,
  })
  if (upgrade) {
    setPlan(status, 'controlPlane', upgrade.plan.controlPlane)
    setPlan(status, 'workers', upgrade.plan.workers)
  }
  const options = { conditions: [condition.type], signal: context.signal }
  await orAbsent(commitChanges(context.client, Cluster, before, after, options))
}

function setPlan(status: NonNullable<Cluster['status']>, part: 'controlPlane' | 'workers', plan: readonly string[]): void {
  if (plan.length > 0) status[part] = { ...status[part], upgradePlan: plan.map((version) => ({ version })) }
  else delete status[part]?.upgradePlan
}
