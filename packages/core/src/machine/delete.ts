/**
 * Takes a Machine down: hooks, drain, volumes, infrastructure, bootstrap, Node, in that order. Each step either is done, then
 * the next one follows in the same pass, or says what it waits for.
 * Upstream: core/reconcilers/machine/machine_controller.go, reconcileDelete, v1.14.
 */
import {
  ControlPlaneContract,
  ExcludeNodeDrainingAnnotation,
  ExcludeWaitForNodeVolumeDetachAnnotation,
  InfraMachineContract,
  Machine,
  MachineControlPlaneLabel,
  MachineFinalizer,
  type MachineStatus,
  ClusterNameLabel,
  PreDrainDeleteHookAnnotationPrefix,
  PreTerminateDeleteHookAnnotationPrefix,
} from '@capstan/api'
import { type Outcome, proceed, requeue, wait } from '@capstan/controller'
import { isDeleting, keyOf, messageOf, Node, orAbsent, removeFinalizer, seconds, timestamp } from '@capstan/kube'
import { deleteExternal, isGone } from '../external/delete.ts'
import { getExternal } from '../external/get.ts'
import { found, read } from '../external/observed.ts'
import { drainNode, isUnreachable } from './drain/drain.ts'
import type { DeletionStage, DeletionStep, MachineIO, MachinePhase, MachineScope, StepEnd } from './scope.ts'
import { attachedVolumes } from './volumes.ts'

/** Pods and volumes of a workload cluster are not watched. Upstream looks every 20 s. */
const RetryInterval = seconds(5)

type Step = (scope: MachineScope, io: MachineIO, node: string | undefined) => Promise<StepEnd>

export const remove: MachinePhase = async (scope, io) => {
  const node = await nodeToDelete(scope, io)
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
    const end = await step(scope, io, node).catch((err: unknown) => {
      scope.steps[name] = { state: 'failed', message: messageOf(err), outcome: proceed() }
      throw err
    })
    scope.steps[name] = end
    if (end.state === 'waiting' || end.state === 'failed') return end.outcome
  }
  scope.deletion = { reason: 'DeletionCompleted', message: 'Deletion completed' }
  removeFinalizer(scope.machine, MachineFinalizer)
  io.updates.forget(scope.machine.metadata.uid)
  return proceed()
}

const done: StepEnd = { state: 'done' }
const skipped: StepEnd = { state: 'skipped' }
const waiting = (outcome: Outcome): StepEnd => ({ state: 'waiting', outcome })

/**
 * The name of the Node that goes with the Machine. `undefined` when it is left alone: there is none, the whole cluster goes, or
 * nothing of the control plane would be left to ask.
 */
async function nodeToDelete(scope: MachineScope, io: MachineIO): Promise<string | undefined> {
  const { machine, cluster } = scope
  const leave = (reason: string) => {
    io.log.debug('Skipping deletion of Kubernetes Node associated with Machine', { reason })
    return undefined
  }
  if (isDeleting(cluster)) return leave('the Cluster is being deleted')
  const name = machine.status?.nodeRef?.name ?? lateNode(scope, io)
  if (name === undefined) return leave('the Machine has no Node')

  const ref = cluster.spec.controlPlaneRef
  const controlPlane = ref && (await getExternal(io.client, ref, cluster.metadata.namespace!))
  if (controlPlane && isDeleting(controlPlane.object)) return leave('the control plane is being deleted')
  if (controlPlane && read(controlPlane, ControlPlaneContract.externalManagedControlPlane)) return name
  const { items: members } = await io.cache.list(Machine, {
    namespace: machine.metadata.namespace!,
    labelSelector: `${ClusterNameLabel}=${machine.spec.clusterName},${MachineControlPlaneLabel}`,
  })
  if (members.every(isDeleting)) return leave('no control plane Machine would remain')
  return name
}

/** A Node that registered so late that the Machine never came to know it. Best effort. */
function lateNode({ machine, cluster, infrastructure }: MachineScope, io: MachineIO): string | undefined {
  const infra = found(infrastructure)
  const providerID = machine.spec.providerID ?? (infra && read(infra, InfraMachineContract.providerID))
  const connection = io.clusters.connection(keyOf(cluster))
  const name = providerID && connection ? connection.nodesByProviderID(providerID)[0]?.metadata.name : undefined
  if (name) machine.status = { ...machine.status, nodeRef: { name } }
  return name || undefined
}

const preDrainHooks: Step = async (scope, io) => {
  const hooks = hooksOf(scope.machine, PreDrainDeleteHookAnnotationPrefix)
  if (hooks.length === 0) return done
  startTime(scope, io, 'waitForPreDrainHookStartTime')
  return stage(scope, 'WaitingForPreDrainHook', `Waiting for pre-drain hooks to succeed (hooks: ${hooks.join(',')})`)
}

const preTerminateHooks: Step = async (scope, io) => {
  const hooks = hooksOf(scope.machine, PreTerminateDeleteHookAnnotationPrefix)
  if (hooks.length === 0) return done
  startTime(scope, io, 'waitForPreTerminateHookStartTime')
  return stage(scope, 'WaitingForPreTerminateHook', `Waiting for pre-terminate hooks to succeed (hooks: ${hooks.join(',')})`)
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
  const startedAt = startTime(scope, io, 'nodeDrainStartTime')
  const reached = workloadNode(scope, io, name!)
  if (reached === 'disconnected') return disconnected(scope, drainFailure, `failed to drain Node ${name}`)
  if (reached === undefined) return done
  const { client, node } = reached
  let left: string | undefined
  try {
    left = await drainNode(client, node, { startedAt, now: io.clock.now(), signal: io.signal })
  } catch (err) {
    io.events.event(machine, 'Warning', 'FailedDrainNode', `error draining Machine's node "${name}": ${(err as Error).message}`)
    scope.deletion = drainFailure
    throw err
  }
  if (left === undefined) {
    io.events.event(machine, 'Normal', 'SuccessfulDrainNode', `success draining Machine's node "${name}"`)
    return done
  }
  scope.deletion = { reason: 'DrainingNode', message: left }
  return waiting(requeue(RetryInterval, `Node ${name} to be drained`))
}

const detachVolumes: Step = async (scope, io, name) => {
  const { machine } = scope
  if (machine.metadata.annotations?.[ExcludeWaitForNodeVolumeDetachAnnotation] !== undefined) return skipped
  const limit = machine.spec.deletion?.nodeVolumeDetachTimeoutSeconds
  if (!isStillRunning(scope) || isOverdue(scope, io, 'waitForNodeVolumeDetachStartTime', limit)) return skipped
  const startedAt = startTime(scope, io, 'waitForNodeVolumeDetachStartTime')
  const reached = workloadNode(scope, io, name!)
  if (reached === 'disconnected') return disconnected(scope, volumesFailure, `failed to wait for volumes of Node ${name}`)
  // Who would detach volumes of a Node that does not report?
  if (reached === undefined || isUnreachable(reached.node)) return done
  let lines: string[]
  try {
    lines = await attachedVolumes(reached.client, reached.node, io.signal)
  } catch (err) {
    io.events.event(
      machine,
      'Warning',
      'FailedWaitForVolumeDetach',
      `error waiting for node volumes detaching, Machine's node "${name}": ${(err as Error).message}`,
    )
    scope.deletion = volumesFailure
    throw err
  }
  if (lines.length === 0) {
    io.events.event(
      machine,
      'Normal',
      'NodeVolumesDetached',
      `success waiting for node volumes detaching Machine's node "${name}"`,
    )
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
  scope.infrastructure = await deleteExternal(scope.infrastructure, io)
  if (isGone(scope.infrastructure)) return done
  return stage(scope, 'WaitingForInfrastructureDeletion', `Waiting for ${kind} to be deleted`)
}

const deleteBootstrap: Step = async (scope, io) => {
  const kind = scope.machine.spec.bootstrap.configRef?.kind
  if (kind === undefined) return skipped
  scope.deletion = failureToDelete(kind)
  scope.bootstrap = await deleteExternal(scope.bootstrap, io)
  if (isGone(scope.bootstrap)) return done
  return stage(scope, 'WaitingForBootstrapDeletion', `Waiting for ${kind} to be deleted`)
}

/** Holds until the step knows better. */
const failureToDelete = (kind: string): DeletionStage => ({
  reason: 'InternalError',
  message: `Failed to delete ${kind}, please check controller logs for errors`,
})

const deleteNode: Step = async (scope, io, name) => {
  const { machine, cluster } = scope
  const connection = io.clusters.connection(keyOf(cluster))
  try {
    if (!connection) throw new Error(ConnectionDown)
    await orAbsent(connection.client.delete(Node, { name: name! }, { signal: io.signal }))
    return done
  } catch (err) {
    io.events.event(machine, 'Warning', 'FailedDeleteNode', `error deleting Machine's node: ${(err as Error).message}`)
    const limit = machine.spec.deletion?.nodeDeletionTimeoutSeconds
    const left = limit ? Date.parse(machine.metadata.deletionTimestamp!) + seconds(limit) - io.clock.now() : undefined
    if (left !== undefined && left <= 0) {
      io.log.info('Node deletion timeout expired, continuing without Node deletion', { Node: name, err })
      return done
    }
    scope.deletion = { reason: 'DeletingNode', message: 'Error deleting Node, please check controller logs for errors' }
    io.log.info('Cannot delete Node', { Node: name, err })
    const outcome =
      left === undefined && !connection
        ? wait(ConnectionDown)
        : requeue(Math.min(RetryInterval, left ?? RetryInterval), `Node ${name} to be deleted`)
    return { state: 'failed', message: messageOf(err), outcome }
  }
}

/** There is a host to be considerate of: nothing has begun to take it away. */
function isStillRunning({ machine, infrastructure }: MachineScope): boolean {
  if (machine.status?.deletion?.waitForPreTerminateHookStartTime) return false
  const infra = found(infrastructure)
  return infra !== undefined && !isDeleting(infra.object)
}

/** The Node as the workload cluster has it; `undefined` when it is gone already. */
function workloadNode({ cluster }: MachineScope, io: MachineIO, name: string) {
  const connection = io.clusters.connection(keyOf(cluster))
  if (!connection) return 'disconnected'
  const node = connection.node(name)
  return node && { client: connection.client, node }
}

const ConnectionDown = 'connection to the workload cluster is down'

function disconnected(scope: MachineScope, failure: DeletionStage, what: string): StepEnd {
  scope.deletion = failure
  return { state: 'failed', message: `${what}: ${ConnectionDown}`, outcome: requeue(RetryInterval, ConnectionDown) }
}

function stage(scope: MachineScope, reason: DeletionStage['reason'], message: string): StepEnd {
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

/** Notes when a step began, the first time it is met. */
function startTime({ machine }: MachineScope, io: MachineIO, name: StartTime): string {
  const status = (machine.status ??= {})
  const startedAt = status.deletion?.[name] ?? timestamp(io.clock.now())
  status.deletion = { ...status.deletion, [name]: startedAt }
  return startedAt
}

/** The step has had its time. Without a limit, or with 0, it has all the time there is. */
function isOverdue({ machine }: MachineScope, io: MachineIO, name: StartTime, limitSeconds: number | undefined): boolean {
  const startedAt = machine.status?.deletion?.[name]
  if (!limitSeconds || startedAt === undefined) return false
  return io.clock.now() - Date.parse(startedAt) >= seconds(limitSeconds)
}
