/** Reconciles the topology of one Cluster with its spec and class. */
import {
  AfterControlPlaneInitialized,
  BeforeClusterCreate,
  BeforeClusterDelete,
  Cluster,
  ClusterNameLabel,
  ClusterTopologyOwnedLabel,
  ClusterTopologyUpgradeStepAnnotation,
  ConditionOrder,
  isPaused,
  OkToDeleteAnnotation,
  pendingHooks,
  waitingHooks,
  WaitingHooksAnnotation,
} from '@capstan/api'
import {
  commitChanges,
  inTurn,
  mergeOutcomes,
  newestOf,
  onlyConflicts,
  type Outcome,
  proceed,
  type ReconcileContext,
  requeue,
  wait,
} from '@capstan/controller'
import {
  draft,
  equal,
  isDeleting,
  type JsonObject,
  type ObjectKey,
  orAbsent,
  seconds,
  setConditions,
  withErrorContext,
  withTerminalErrors,
  keyOf,
  keyText,
} from '@capstan/kube'
import { reportLegacyConditions } from '../legacy-status.ts'
import { removeRetryRequest, retryRequestOf } from '../retry-requests.ts'
import { callAfterHooks } from './hooks/after-hooks.ts'
import {
  type Applier,
  applyControlPlane,
  applyInfrastructureCluster,
  applyMachineDeployments,
  applyMachinePools,
} from './apply.ts'
import { type Blueprint, NotReadyYet, observeBlueprint, observeClass } from './blueprint.ts'
import { type CurrentState, observeCurrentState } from './current-state.ts'
import { refToDesired } from './desired-state/desired-object.ts'
import { applyHealthCheck } from './desired-state/health-checks.ts'
import { type DesiredState, desiredState, type DesiredVersions, removeEmptyEndpoints } from './desired-state/desired-state.ts'
import { TopologyScope, type TopologyMemory } from './scope.ts'
import { applyPatches } from './patches/patches.ts'
import { legacyTopologyReconciled, topologyReconciledCondition } from './topology-reconciled.ts'
import { hooksPendingAfterStart, startWasInterrupted } from './upgrade/upgrade.ts'
import { withWaiting } from '../waiting-records.ts'
import { withDefaultedVariables } from './variables.ts'
import { decideVersions, type VersionDecision } from './versions.ts'

/** Reconciles one topology. May be called at any time, and any number of times. */
export async function reconcileTopology(key: ObjectKey, context: ReconcileContext, memory: TopologyMemory): Promise<Outcome> {
  const cluster = context.cache.peek(Cluster, key)
  if (!cluster) memory.forget(key)
  if (!cluster?.spec.topology) return proceed()
  const paused = isPaused(cluster, cluster)
  if (!paused && !memory.hooks.ready) return requeue(seconds(1), 'Runtime Extensions are still being discovered')

  const scope = new TopologyScope(cluster, context, memory)
  if (!paused) memory.hooks.handleRetryRequest(cluster)
  let error: unknown
  try {
    if (isDeleting(cluster) && !paused) await allowDeletion(scope)
    else if (!paused) await applyTopology(scope)
  } catch (err) {
    error = err
  }
  await report(scope, paused, error, retryRequestOf(cluster))
  if (error instanceof NotReadyYet) return wait(error.message)
  if (error !== undefined) throw error
  return mergeOutcomes(scope.blocking.map(({ hook, retryAfter }) => requeue(retryAfter, `${hook} blocks`)))
}

/**
 * Allows the Cluster controller, by the annotation `ok-to-delete`, to delete the Cluster's objects once BeforeClusterDelete does not block.
 * Without a runtime client, the Cluster controller does not wait for this annotation.
 */
async function allowDeletion(scope: TopologyScope): Promise<void> {
  const { cluster, context, memory } = scope
  if (!memory.runtime || cluster.metadata.annotations?.[OkToDeleteAnnotation] !== undefined) return
  if (!scope.recordResult(await memory.hooks.call(BeforeClusterDelete, cluster, {}, context))) return
  await scope.change({ annotations: { [OkToDeleteAnnotation]: '' } })
}

async function applyTopology(scope: TopologyScope): Promise<void> {
  const { context } = scope
  const clusterClass = await observeClass(scope.cluster, context)
  const cluster = await storeDefaults(
    scope,
    withTerminalErrors(() => withDefaultedVariables(scope.cluster, clusterClass)),
  )

  const blueprint = await observeBlueprint(cluster.spec.topology!, clusterClass, context)
  const current = await observeCurrentState(cluster, blueprint, context)
  if (!(await callBeforeClusterCreate(scope, cluster))) return

  const { decision, desired } = await withErrorContext('error computing the desired state of the Cluster topology', async () => {
    const decision = await decideVersions(scope, cluster, blueprint, current)
    const { controlPlane, workers, pools } = decision
    const versions = { controlPlane: controlPlane.version, workers, pools }
    return { decision, desired: await patchedState(scope, cluster, blueprint, current, versions) }
  })
  await withErrorContext('error reconciling the Cluster topology', async () => {
    const failure = await callAfterHooks(scope, cluster, decision)
    await applyState(scope, desired, current, decision)
    if (failure !== undefined) throw failure
  })
}

/**
 * Stores the defaulted variables, so that a default that changes later does not change this Cluster. Usually admission has set them already. It
 * has not if, for example, the ClusterClass was created or changed after the last write of the Cluster. Returns the stored Cluster.
 */
async function storeDefaults(scope: TopologyScope, defaulted: Cluster): Promise<Cluster> {
  const { client, cache, signal } = scope.context
  const { cluster } = scope
  const { topology } = defaulted.spec
  if (equal(cluster.spec.topology, topology)) return cluster
  scope.cluster = await inTurn(cache, Cluster, keyOf(cluster), () => {
    const newest = newestOf(Cluster, cluster, cache)
    // A user's change of the topology must cause a conflict; a change of the status by another controller need not.
    const { resourceVersion } = (equal(newest.spec.topology, cluster.spec.topology) ? newest : cluster).metadata
    const body = { metadata: { resourceVersion }, spec: { topology } } as JsonObject
    return client.patch(Cluster, keyOf(cluster), { type: 'merge', body }, { signal })
  })
  return scope.cluster
}

/**
 * Returns whether the Cluster's objects may be created. Calls BeforeClusterCreate unless the Cluster refers to its objects already, or a handler
 * has already allowed the creation. When a handler allows the creation, makes AfterControlPlaneInitialized pending: BeforeClusterCreate is then
 * not called again, even if the process stops before the Cluster has references. Upstream calls it again.
 */
async function callBeforeClusterCreate(scope: TopologyScope, cluster: Cluster): Promise<boolean> {
  const { name } = AfterControlPlaneInitialized
  if (isCreated(cluster) || pendingHooks(cluster).has(name)) return true
  const response = await scope.memory.hooks.call(BeforeClusterCreate, cluster, {}, scope.context)
  if (!scope.recordResult(response)) return false
  if (response.kind === 'proceed' && response.called) await scope.change({ add: [name] })
  return true
}

const isCreated = ({ spec }: Cluster): boolean => spec.infrastructureRef !== undefined || spec.controlPlaneRef !== undefined

async function patchedState(
  scope: TopologyScope,
  cluster: Cluster,
  blueprint: Blueprint,
  current: CurrentState,
  versions: DesiredVersions,
): Promise<DesiredState> {
  const { context, memory } = scope
  const desired = withTerminalErrors(() => desiredState(cluster, blueprint, current, versions))
  const extensions = { runtime: memory.runtime, context, responses: memory.stateOf(cluster).responses }
  reportIgnored(scope, await applyPatches(cluster, blueprint, desired, extensions))
  removeEmptyEndpoints(desired)
  return desired
}

/**
 * Records an event about the ignored parts of patches, unless the previous reconcile ignored the same parts. As upstream, ignored parts are
 * not an error.
 */
function reportIgnored({ cluster, context, memory }: TopologyScope, ignored: readonly string[]): void {
  const text = ignored.join('; ')
  const clusterMemory = memory.stateOf(cluster)
  if (text !== '' && text !== clusterMemory.ignored) context.events.event(cluster, 'Warning', 'PatchPartsIgnored', text)
  clusterMemory.ignored = text
}

/** Applies each object before the objects that refer to it. */
async function applyState(
  scope: TopologyScope,
  desired: DesiredState,
  current: CurrentState,
  { controlPlane, workers, pools, plan, facts }: VersionDecision,
): Promise<void> {
  const applier: Applier = {
    cluster: scope.cluster,
    context: scope.context,
    applied: scope.memory.stateOf(scope.cluster).applied,
  }
  await applyInfrastructureCluster(applier, desired, current)

  if (controlPlane.state === 'starting') {
    // The pending hooks are recorded before the version is written, so that a crash in between does not lose them. See startWasInterrupted.
    await scope.change({
      add: scope.memory.runtime ? hooksPendingAfterStart(controlPlane.version, plan) : [],
      annotations: { [ClusterTopologyUpgradeStepAnnotation]: controlPlane.version },
    })
  }
  let failure: unknown
  try {
    await applyHealthCheck(applier, desired.controlPlaneHealthCheck, current.controlPlane?.healthCheck)
    if (!controlPlane.pending) await applyControlPlane(applier, desired, current)
  } catch (err) {
    failure = err
  }
  // A step that was interrupted at its start stays recorded until it is repeated.
  const step = startWasInterrupted(facts) ? facts.step : controlPlane.version
  await writeReferences(scope, desired, { step, controlPlaneFailed: failure !== undefined })
  if (failure !== undefined) throw failure
  await applyMachineDeployments(applier, desired, current, workers)
  await applyMachinePools(applier, desired, current, pools)
}

/**
 * Writes the Cluster's references to the infrastructure cluster and, unless applying the control plane has failed, to the control plane.
 * During an upgrade, also writes `step`, usually the version of the control plane, to the annotation upgrade-step: MachineSets and control
 * planes may then create Machines although the control plane does not have the version of the topology yet. Without a runtime client there
 * are no pending hooks; then the Cluster is upgrading if the plan has steps. Also sets labels and, when a runtime client exists and the Cluster
 * has no references yet, makes AfterControlPlaneInitialized pending.
 */
async function writeReferences(
  scope: TopologyScope,
  { infrastructureCluster, controlPlane }: DesiredState,
  { step, controlPlaneFailed }: { readonly step: string | undefined; readonly controlPlaneFailed: boolean },
): Promise<void> {
  const { cluster, memory, plan } = scope
  const hasSteps = plan !== undefined && plan.controlPlane.length + plan.workers.length > 0
  const isUpgrading = pendingHooks(cluster).has('AfterClusterUpgrade') || (!memory.runtime && hasSteps)
  const { resourceVersion } = cluster.metadata
  await scope.change({
    annotations: { [ClusterTopologyUpgradeStepAnnotation]: isUpgrading ? (step ?? null) : null },
    ...(isCreated(cluster) || !memory.runtime ? {} : { add: [AfterControlPlaneInitialized.name] }),
    labels: { [ClusterNameLabel]: cluster.metadata.name, [ClusterTopologyOwnedLabel]: '' },
    spec: {
      infrastructureRef: refToDesired(infrastructureCluster),
      ...(controlPlaneFailed ? {} : { controlPlaneRef: refToDesired(controlPlane) }),
    },
  })
  if (scope.cluster.metadata.resourceVersion === resourceVersion) return
  const name = JSON.stringify(keyText(keyOf(cluster)))
  scope.context.events.event(cluster, 'Normal', 'TopologyUpdate', `Updated Cluster ${name}`)
}

/**
 * Reports the condition, the plan of an upgrade, and the records of waiting hooks. Removes the retry request with which the reconcile
 * began, if it was handled.
 */
async function report(scope: TopologyScope, paused: boolean, error: unknown, request: string | undefined): Promise<void> {
  const { context, memory, blocking, upgrade, plan } = scope
  let before = scope.cluster
  const waiting = scope.failed ? [...blocking, scope.failed] : blocking
  // A reconcile that failed before it reached a hook does not know whether that hook still blocks.
  const mayBlock = (hook: string) => error !== undefined && !isDeleting(before) && !scope.notBlocking.has(hook)
  const annotations = paused ? before.metadata.annotations : withWaiting(before, waiting, context.clock.now(), mayBlock)
  if (!paused && request !== undefined && request === retryRequestOf(before) && isRetryHandled(scope, error)) {
    const removal = await removeRetryRequest(context.client, before, context.signal, annotations?.[WaitingHooksAnnotation])
    if (removal.removed) memory.hooks.retryRequestRemoved(before)
    before = removal.cluster
  }
  const after = draft(before)
  const status = (after.status ??= {})
  if (annotations) {
    const records = annotations[WaitingHooksAnnotation]
    const { [WaitingHooksAnnotation]: _, ...otherAnnotations } = before.metadata.annotations ?? {}
    after.metadata.annotations = { ...otherAnnotations, ...(records === undefined ? {} : { [WaitingHooksAnnotation]: records }) }
  }
  const condition = topologyReconciledCondition({
    cluster: before,
    paused,
    error,
    blocking,
    upgradePending: pendingHooks(before).has('AfterClusterUpgrade'),
    upgrade,
  })
  // A conflict is not reported. Upstream reports it like any other failure, until the next reconcile.
  if (!onlyConflicts(error)) {
    const now = context.clock.now()
    const { generation } = before.metadata
    status.conditions = setConditions(before.status?.conditions, [condition], { now, generation, order: ConditionOrder })
    reportLegacyConditions(after, [legacyTopologyReconciled(condition)], { now })
  }
  if (plan) {
    setPlan(status, 'controlPlane', plan.controlPlane)
    setPlan(status, 'workers', plan.workers)
  }
  const owned = [condition.type]
  const options = { conditions: owned, legacyConditions: owned, cache: context.cache, signal: context.signal }
  await orAbsent(commitChanges(context.client, Cluster, before, after, options))
}

/**
 * Whether the retry request was handled. True if the reconcile succeeded. If a hook failed, true if this reconcile has a result (failed,
 * blocking or not blocking) for each hook that the annotation waiting-hooks records. False after any other error.
 */
function isRetryHandled({ cluster, failed, notBlocking, blocking }: TopologyScope, error: unknown): boolean {
  if (error === undefined) return true
  const reached = [failed, ...blocking].map((waitingHook) => waitingHook?.hook)
  return failed !== undefined && waitingHooks(cluster).every(({ hook }) => reached.includes(hook) || notBlocking.has(hook))
}

function setPlan(status: NonNullable<Cluster['status']>, field: 'controlPlane' | 'workers', plan: readonly string[]): void {
  if (plan.length > 0) status[field] = { ...status[field], upgradePlan: plan.map((version) => ({ version })) }
  else delete status[field]?.upgradePlan
}
