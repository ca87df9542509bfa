/**
 * Deletes a Machine: pre-drain hooks, drain, volumes, pre-terminate hooks, infrastructure, bootstrap config, Node, in that order. When a
 * step is done or skipped, the next one follows in the same reconcile; when it waits or fails, the later ones are not run. Upstream:
 * core/reconcilers/machine/machine_controller.go, reconcileDelete, v1.14.
 */
import {
  ControlPlaneContract,
  ExcludeNodeDrainingAnnotation,
  ExcludeWaitForNodeVolumeDetachAnnotation,
  InfraMachineContract,
  Machine,
  MachineControlPlaneLabel,
  MachineDrainRule,
  MachineFinalizer,
  type MachineStatus,
  ClusterNameLabel,
  PreDrainDeleteHookAnnotationPrefix,
  PreTerminateDeleteHookAnnotationPrefix,
} from '@capstan/api'
import { type Outcome, proceed, requeue, wait } from '@capstan/controller'
import {
  isDeleting,
  keyOf,
  messageOf,
  Node,
  orAbsent,
  removeFinalizer,
  seconds,
  timeLeft,
  timestamp,
  withErrorContext,
} from '@capstan/kube'
import { deleteExternal, isGone } from '../external/delete.ts'
import { observeExternal } from '../external/observe.ts'
import { externalOf, type Observed, read } from '../external/observed.ts'
import { SeeLogs } from '../see-logs.ts'
import { type DrainTarget, drainNode, isUnreachable } from './drain/drain.ts'
import { nodeByProviderID } from './node.ts'
import type { DeletionStage, DeletionStep, MachineIO, MachinePhase, MachineScope, StepResult } from './scope.ts'
import { volumesToDetach } from './volumes.ts'

/** Retry interval of steps in the workload cluster, whose changes trigger no reconcile. Upstream: 20 s for drain and volumes. */
const RetryInterval = seconds(5)

/** Minimum time for which a failed deletion of a Node is retried. Upstream: nodeDeletionRetryTimeout. */
const MinNodeDeletionRetryTime = seconds(10)

type Step = (scope: MachineScope, io: MachineIO, node: string | undefined) => Promise<StepResult>

/** Runs the steps of the deletion, and removes the finalizer after the last step. */
export const remove: MachinePhase = async (scope, io) => {
  const node = await nodeToDelete(scope, io).catch((err: unknown) => {
    scope.deletion = { reason: 'InternalError', message: SeeLogs }
    throw err
  })
  const steps: [name: DeletionStep, Step][] = [
    ...(node === undefined
      ? []
      : ([
          ['preDrainHooks', preDrainHooks],
          ['drain', drain],
          ['volumes', detachVolumes],
        ] satisfies [DeletionStep, Step][])),
    ['preTerminateHooks', preTerminateHooks],
    ['infrastructure', deleteInfrastructure],
    ['bootstrap', deleteBootstrap],
    ...(node === undefined ? [] : ([['node', deleteNode]] satisfies [DeletionStep, Step][])),
  ]
  for (const [name, step] of steps) {
    const result = await step(scope, io, node).catch((err: unknown) => {
      scope.steps[name] = { state: 'failed', message: messageOf(err), outcome: proceed() }
      throw err
    })
    scope.steps[name] = result
    if (result.state === 'waiting' || result.state === 'failed') return result.outcome
  }
  scope.deletion = { reason: 'DeletionCompleted', message: 'Deletion completed' }
  removeFinalizer(scope.machine, MachineFinalizer)
  io.updates.forget(scope.machine.metadata.uid)
  io.nodeDeletionFailures.delete(scope.machine.metadata.uid)
  return proceed()
}

const done: StepResult = { state: 'done' }
const skipped: StepResult = { state: 'skipped' }
const waiting = (outcome: Outcome): StepResult => ({ state: 'waiting', outcome })

/**
 * Returns the name of the Node to drain and delete; `undefined` when there is none, when the Cluster or its control plane object is being
 * deleted, or when no control plane Machine would remain and the control plane is not managed externally.
 */
async function nodeToDelete(scope: MachineScope, io: MachineIO): Promise<string | undefined> {
  const { machine, cluster } = scope
  const keepNode = (reason: string) => {
    io.log.debug('Skipping deletion of Kubernetes Node associated with Machine', { reason })
    return undefined
  }
  if (isDeleting(cluster)) return keepNode('the Cluster is being deleted')
  const name = machine.status?.nodeRef?.name ?? findLateNode(scope, io)
  if (name === undefined) return keepNode('the Machine has no Node')

  const ref = cluster.spec.controlPlaneRef
  const controlPlane = ref && (await observeExternal(io, ref, cluster.metadata.namespace!, () => []))
  if (controlPlane && isDeleting(controlPlane.object)) return keepNode('the control plane is being deleted')
  // As upstream, a value of another type counts as false.
  if (controlPlane && read(controlPlane, ControlPlaneContract.externalManagedControlPlane) === true) return name
  const { items: controlPlaneMachines } = await io.cache.list(Machine, {
    namespace: machine.metadata.namespace!,
    labelSelector: `${ClusterNameLabel}=${machine.spec.clusterName},${MachineControlPlaneLabel}`,
  })
  if (controlPlaneMachines.every(isDeleting)) return keepNode('no control plane Machine would remain')
  return name
}

/**
 * Finds a Node that registered too late for `status.nodeRef`, and sets `status.nodeRef`. Best effort: when several Nodes match, or there is
 * no connection to the workload cluster, the Machine is deleted without its Node.
 */
function findLateNode({ machine, cluster, infrastructure }: MachineScope, io: MachineIO): string | undefined {
  const infra = externalOf(infrastructure)
  const providerID = machine.spec.providerID ?? (infra && read(infra, InfraMachineContract.providerID))
  const connection = io.clusters.connection(keyOf(cluster))
  if (!providerID || !connection) return undefined
  try {
    const name = nodeByProviderID(connection, providerID)?.metadata.name
    if (name) machine.status = { ...machine.status, nodeRef: { name } }
    return name
  } catch (err) {
    io.log.error('Failed to get node while deleting Machine', { err })
    return undefined
  }
}

const preDrainHooks: Step = async (scope, io) => {
  const hooks = hooksOf(scope.machine, PreDrainDeleteHookAnnotationPrefix)
  if (hooks.length === 0) return done
  ensureStartTime(scope, io, 'waitForPreDrainHookStartTime')
  return waitInStage(scope, 'WaitingForPreDrainHook', `Waiting for pre-drain hooks to succeed (hooks: ${hooks.join(',')})`)
}

const preTerminateHooks: Step = async (scope, io) => {
  const hooks = hooksOf(scope.machine, PreTerminateDeleteHookAnnotationPrefix)
  if (hooks.length === 0) return done
  ensureStartTime(scope, io, 'waitForPreTerminateHookStartTime')
  return waitInStage(
    scope,
    'WaitingForPreTerminateHook',
    `Waiting for pre-terminate hooks to succeed (hooks: ${hooks.join(',')})`,
  )
}

const hooksOf = ({ metadata }: Machine, prefix: string): string[] =>
  Object.keys(metadata.annotations ?? {})
    .filter((key) => key.startsWith(prefix))
    .sort()

const drain: Step = async (scope, io, name) => {
  const { machine } = scope
  if (machine.metadata.annotations?.[ExcludeNodeDrainingAnnotation] !== undefined) return skipped
  if (!isStillRunning(scope) || isOverdue(scope, io, 'nodeDrainStartTime', machine.spec.deletion?.nodeDrainTimeoutSeconds))
    return skipped
  const startedAt = ensureStartTime(scope, io, 'nodeDrainStartTime')
  const reportFailure = (err: unknown) => {
    io.events.event(machine, 'Warning', 'FailedDrainNode', `error draining Machine's node "${name}": ${messageOf(err)}`)
    scope.deletion = drainFailure
  }
  let progress: string | undefined
  try {
    const target = await drainTarget(scope, io, name!)
    if (target === 'disconnected') return failDisconnected(reportFailure, `failed to drain Node ${name}: ${ConnectionDown}`)
    progress = target && (await drainNode(target, startedAt))
  } catch (err) {
    reportFailure(err)
    throw err
  }
  if (progress === undefined) {
    io.events.event(machine, 'Normal', 'SuccessfulDrainNode', `success draining Machine's node "${name}"`)
    return done
  }
  scope.deletion = { reason: 'DrainingNode', message: progress }
  return waiting(requeue(RetryInterval, `Node ${name} to be drained`))
}

const detachVolumes: Step = async (scope, io, name) => {
  const { machine } = scope
  if (machine.metadata.annotations?.[ExcludeWaitForNodeVolumeDetachAnnotation] !== undefined) return skipped
  const limit = machine.spec.deletion?.nodeVolumeDetachTimeoutSeconds
  if (!isStillRunning(scope) || isOverdue(scope, io, 'waitForNodeVolumeDetachStartTime', limit)) return skipped
  const startedAt = ensureStartTime(scope, io, 'waitForNodeVolumeDetachStartTime')
  const reportFailure = (err: unknown) => {
    const text = `error waiting for node volumes detaching, Machine's node "${name}": ${messageOf(err)}`
    io.events.event(machine, 'Warning', 'FailedWaitForVolumeDetach', text)
    scope.deletion = volumesFailure
  }
  let lines: string[]
  try {
    const target = await drainTarget(scope, io, name!)
    if (target === 'disconnected') return failDisconnected(reportFailure, ConnectionDown)
    // The kubelet of an unreachable Node cannot detach volumes.
    lines = !target || isUnreachable(target.node) ? [] : await volumesToDetach(target)
  } catch (err) {
    reportFailure(err)
    throw err
  }
  if (lines.length === 0) {
    const text = `success waiting for node volumes detaching Machine's node "${name}"`
    io.events.event(machine, 'Normal', 'NodeVolumesDetached', text)
    return done
  }
  scope.deletion = {
    reason: 'WaitingForVolumeDetach',
    message: [`Waiting for Node volumes to be detached (started at ${startedAt})`, ...lines].join('\n'),
  }
  return waiting(requeue(RetryInterval, `volumes of Node ${name} to be detached`))
}

const deleteInfrastructure: Step = async (scope, io) => {
  const { kind } = scope.machine.spec.infrastructureRef
  scope.deletion = failureToDelete(kind)
  scope.infrastructure = await deleteUnlessUnread(scope.infrastructure, io)
  if (isGone(scope.infrastructure)) return done
  return waitInStage(scope, 'WaitingForInfrastructureDeletion', `Waiting for ${kind} to be deleted`)
}

const deleteBootstrap: Step = async (scope, io) => {
  const kind = scope.machine.spec.bootstrap.configRef?.kind
  if (kind === undefined) return skipped
  scope.deletion = failureToDelete(kind)
  scope.bootstrap = await deleteUnlessUnread(scope.bootstrap, io)
  if (isGone(scope.bootstrap)) return done
  return waitInStage(scope, 'WaitingForBootstrapDeletion', `Waiting for ${kind} to be deleted`)
}

/** Deletes a referenced object. Does nothing if the object could not be read: the phase that reads it has failed and is retried. */
const deleteUnlessUnread = async (observed: Observed, io: MachineIO): Promise<Observed> =>
  observed.state === 'unread' ? observed : await deleteExternal(observed, io)

/** Deletion stage that is reported until the step sets a more specific stage. */
const failureToDelete = (kind: string): DeletionStage => ({
  reason: 'InternalError',
  message: `Failed to delete ${kind}, please check controller logs for errors`,
})

const deleteNode: Step = async (scope, io, name) => {
  const { machine, cluster } = scope
  const connection = io.clusters.connection(keyOf(cluster))
  try {
    if (!connection) throw new Error(`failed deleting Node because connection to the workload cluster is down: ${ConnectionDown}`)
    await withErrorContext(`error deleting node ${name}`, () =>
      orAbsent(connection.client.delete(Node, { name: name! }, { signal: io.signal })),
    )
    return done
  } catch (err) {
    io.events.event(machine, 'Warning', 'FailedDeleteNode', `error deleting Machine's Node: ${messageOf(err)}`)
    const limit = machine.spec.deletion?.nodeDeletionTimeoutSeconds
    const since = Date.parse(machine.metadata.deletionTimestamp!)
    // Earlier steps may have used up the timeout, and one failed request must not leave the Node behind.
    const firstFailure = io.nodeDeletionFailures.get(machine.metadata.uid) ?? io.clock.elapsed()
    io.nodeDeletionFailures.set(machine.metadata.uid, firstFailure)
    const retryTimeLeft = firstFailure + MinNodeDeletionRetryTime - io.clock.elapsed()
    const remaining = limit
      ? Math.max(retryTimeLeft, timeLeft({ since, length: seconds(limit), now: io.clock.now() }))
      : undefined
    if (remaining !== undefined && remaining <= 0) {
      io.log.info('Node deletion timeout expired, continuing without Node deletion', { Node: name, err })
      return done
    }
    scope.deletion = { reason: 'DeletingNode', message: 'Error deleting Node, please check controller logs for errors' }
    io.log.info('Cannot delete Node', { Node: name, err })
    const outcome =
      remaining === undefined && !connection
        ? wait(ConnectionDown)
        : requeue(Math.min(RetryInterval, remaining ?? RetryInterval), `Node ${name} to be deleted`)
    return { state: 'failed', message: messageOf(err), outcome }
  }
}

/**
 * Whether the host may still run Pods: the deletion has not waited for pre-terminate hooks, and the infrastructure machine was found and
 * is not being deleted.
 */
function isStillRunning({ machine, infrastructure }: MachineScope): boolean {
  if (machine.status?.deletion?.waitForPreTerminateHookStartTime) return false
  const infra = externalOf(infrastructure)
  return infra !== undefined && !isDeleting(infra.object)
}

/**
 * Returns the Node in the workload cluster with the inputs of its drain; `undefined` when the Node does not exist, and `disconnected` when
 * there is no connection.
 */
async function drainTarget(
  { machine, cluster }: MachineScope,
  io: MachineIO,
  name: string,
): Promise<DrainTarget | 'disconnected' | undefined> {
  const connection = io.clusters.connection(keyOf(cluster))
  if (!connection) return 'disconnected'
  const node = connection.node(name)
  if (!node) return undefined
  const { items: rules } = await io.cache.list(MachineDrainRule, { namespace: machine.metadata.namespace! })
  return { client: connection.client, node, machine, cluster, rules, clock: io.clock, signal: io.signal }
}

const ConnectionDown = 'error getting client: connection to the workload cluster is down'

function failDisconnected(reportFailure: (err: Error) => void, message: string): StepResult {
  reportFailure(new Error(message))
  return { state: 'failed', message, outcome: requeue(RetryInterval, ConnectionDown) }
}

function waitInStage(scope: MachineScope, reason: DeletionStage['reason'], message: string): StepResult {
  scope.deletion = { reason, message }
  return waiting(wait(message))
}

const drainFailure: DeletionStage = {
  reason: 'DrainingNode',
  message: 'Error draining Node, please check controller logs for errors',
}
const volumesFailure: DeletionStage = {
  reason: 'WaitingForVolumeDetach',
  message: 'Error waiting for volumes to be detached from Node, please check controller logs for errors',
}

type StartTime = keyof NonNullable<MachineStatus['deletion']>

/**
 * Returns the start time of a step. Records it at the first reconcile of the step, and again when the clock was set back, which restarts
 * the timeout of the step.
 */
function ensureStartTime({ machine }: MachineScope, io: MachineIO, name: StartTime): string {
  const status = (machine.status ??= {})
  const recorded = status.deletion?.[name]
  const now = io.clock.now()
  const startedAt = recorded !== undefined && Date.parse(recorded) <= now ? recorded : timestamp(now)
  status.deletion = { ...status.deletion, [name]: startedAt }
  return startedAt
}

/** Whether the timeout of the step has expired. A timeout that is absent or 0 never expires. */
function isOverdue({ machine }: MachineScope, io: MachineIO, name: StartTime, limitSeconds: number | undefined): boolean {
  const startedAt = machine.status?.deletion?.[name]
  if (!limitSeconds || startedAt === undefined) return false
  return io.clock.now() - Date.parse(startedAt) >= seconds(limitSeconds)
}
