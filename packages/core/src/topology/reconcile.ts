/** Brings the topology of one Cluster towards what its spec and its class say. */
import {
  AfterControlPlaneInitialized,
  BeforeClusterCreate,
  BeforeClusterDelete,
  Cluster,
  type ClusterClass,
  ClusterNameLabel,
  ClusterTopologyOwnedLabel,
  ClusterTopologyUpgradeStepAnnotation,
  ConditionOrder,
  isPaused,
  OkToDeleteAnnotation,
  pendingHooks,
} from '@capstan/api'
import {
  commitChanges,
  mergeOutcomes,
  onlyConflicts,
  type Outcome,
  proceed,
  type ReconcileContext,
  requeue,
  wait,
} from '@capstan/controller'
import { draft, invalidObject, isDeleting, type ObjectKey, orAbsent, seconds, setConditions } from '@capstan/kube'
import { reportLegacyConditions } from '../legacy-status.ts'
import { callAfterHooks } from './after-hooks.ts'
import { type Applier, applyControlPlane, applyInfrastructureCluster, applyMachineDeployments } from './apply.ts'
import { type Blueprint, NotReadyYet, observeBlueprint, observeClass } from './blueprint.ts'
import { type CurrentState, observeCurrentState } from './current-state.ts'
import { decided, within } from './decided.ts'
import { refToDesired } from './desired-object.ts'
import { type DesiredState, desiredState, type DesiredVersions, leaveEndpointToOthers } from './desired-state.ts'
import { Pass, type TopologyMemory } from './pass.ts'
import { applyPatches } from './patches.ts'
import { legacyTopologyReconciled, topologyReconciled } from './topology-reconciled.ts'
import { unsupportedParts } from './unsupported.ts'
import { marksOfStep } from './upgrade.ts'
import { withWaiting } from '../waiting-records.ts'
import { checkedVariables } from './variables.ts'
import { decideVersions, type VersionDecision } from './versions.ts'

/** Safe to run at any moment, any number of times. */
export async function reconcileTopology(key: ObjectKey, context: ReconcileContext, memory: TopologyMemory): Promise<Outcome> {
  const cluster = context.cache.peek(Cluster, key)
  if (!cluster) memory.forget(key)
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
  const { context } = pass
  const clusterClass = await observeClass(pass.cluster, context)
  const cluster = decided(() => checkedCluster(pass.cluster, clusterClass))

  const blueprint = await observeBlueprint(cluster.spec.topology!, clusterClass, context)
  const current = await observeCurrentState(cluster, blueprint, context)
  if (!(await mayBeCreated(pass, cluster))) return

  const { decision, desired } = await within('error computing the desired state of the Cluster topology', async () => {
    const decision = await decideVersions(pass, cluster, blueprint, current)
    const { controlPlane, workers } = decision
    const versions = { controlPlane: controlPlane.version, workers }
    return { decision, desired: await patchedState(pass, cluster, blueprint, current, versions) }
  })
  await within('error reconciling the Cluster topology', async () => {
    const untold = await callAfterHooks(pass, cluster, decision)
    await applyState(pass, desired, current, decision)
    if (untold !== undefined) throw untold
  })
}

/**
 * Once it was let go it stays so, even if the process stops before the Cluster refers to anything: what is due after creation is then
 * marked. Upstream has no such memory, and asks again beside objects that it has made.
 */
async function mayBeCreated(pass: Pass, cluster: Cluster): Promise<boolean> {
  const { name } = AfterControlPlaneInitialized
  if (isCreated(cluster) || pendingHooks(cluster).has(name)) return true
  const answer = await pass.memory.hooks.call(BeforeClusterCreate, cluster, {}, pass.context.signal)
  if (!pass.passes(answer)) return false
  if (answer.kind === 'go' && answer.called) await pass.change({ add: [name] })
  return true
}

const isCreated = ({ spec }: Cluster): boolean => spec.infrastructureRef !== undefined || spec.controlPlaneRef !== undefined

function checkedCluster(cluster: Cluster, clusterClass: ClusterClass): Cluster {
  const unsupported = unsupportedParts(cluster, clusterClass)
  if (unsupported.length > 0) throw invalidObject(Cluster, cluster.metadata.name, unsupported)
  return checkedVariables(cluster, clusterClass)
}

async function patchedState(
  pass: Pass,
  cluster: Cluster,
  blueprint: Blueprint,
  current: CurrentState,
  versions: DesiredVersions,
): Promise<DesiredState> {
  const { context, memory } = pass
  const desired = decided(() => desiredState(cluster, blueprint, current, versions))
  const extensions = { runtime: memory.runtime, signal: context.signal }
  tellIgnored(pass, await applyPatches(cluster, blueprint, desired, extensions))
  leaveEndpointToOthers(desired)
  return desired
}

/** What patches may not change is no error, upstream neither; but their author would look for it for long. */
function tellIgnored({ cluster, context, memory }: Pass, ignored: readonly string[]): void {
  const text = ignored.join('; ')
  const own = memory.of(cluster)
  if (text !== '' && text !== own.ignored) context.events.event(cluster, 'Warning', 'PatchPartsIgnored', text)
  own.ignored = text
}

/** Writes, in the order in which things refer to one another. */
async function applyState(
  pass: Pass,
  desired: DesiredState,
  current: CurrentState,
  { controlPlane, workers, plan }: VersionDecision,
): Promise<void> {
  const applier: Applier = { cluster: pass.cluster, context: pass.context, applied: pass.memory.of(pass.cluster).applied }
  await applyInfrastructureCluster(applier, desired, current)

  if (controlPlane.state === 'starting') {
    // Marked before the version is taken: a stop in between must not lose what comes after. See startWasInterrupted.
    await pass.change({
      add: marksOfStep(controlPlane.version, plan),
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
  const told = pass.failed ? [...blocking, pass.failed] : blocking
  // A pass that failed before it came to a hook does not know that it holds no more.
  const mayHold = (hook: string) => error !== undefined && !isDeleting(before) && !pass.passed.has(hook)
  const annotations = paused ? before.metadata.annotations : withWaiting(before, told, context.clock.now(), mayHold)
  if (annotations) after.metadata.annotations = annotations
  const condition = topologyReconciled({
    cluster: before,
    paused,
    error,
    blocking,
    upgradePending: pendingHooks(before).has('AfterClusterUpgrade'),
    upgrade,
  })
  // Upstream tells of a conflict as of any failure, for the moment until the next pass.
  if (!onlyConflicts(error)) {
    const now = context.clock.now()
    const { generation } = before.metadata
    status.conditions = setConditions(before.status?.conditions, [condition], { now, generation, order: ConditionOrder })
    reportLegacyConditions(after, [legacyTopologyReconciled(condition)], { now })
  }
  if (upgrade) {
    setPlan(status, 'controlPlane', upgrade.plan.controlPlane)
    setPlan(status, 'workers', upgrade.plan.workers)
  }
  const owned = [condition.type]
  const options = { conditions: owned, legacyConditions: owned, signal: context.signal }
  await orAbsent(commitChanges(context.client, Cluster, before, after, options))
}

function setPlan(status: NonNullable<Cluster['status']>, part: 'controlPlane' | 'workers', plan: readonly string[]): void {
  if (plan.length > 0) status[part] = { ...status[part], upgradePlan: plan.map((version) => ({ version })) }
  else delete status[part]?.upgradePlan
}
