import {
  DesiredReplicasAnnotation,
  Machine,
  MachineDeployment,
  MachineDeploymentNameLabel,
  MachineSet,
  MaxReplicasAnnotation,
  RevisionAnnotation,
} from '@capstan/api'
import { type Outcome, proceed, type ReconcileContext, requeue, wait } from '@capstan/controller'
import { type Input, isControlledBy, isDeleting, keyOf, messageOf, seconds } from '@capstan/kube'
import { deleteChildren } from '../children.ts'
import { machineDeploymentCounts } from './counts.ts'
import { setsByRole, type SetsByRole } from './current-set.ts'
import {
  currentRevision,
  machineSetName,
  machineSetPatch,
  newMachineSet,
  revisionOf,
  scaleAnnotations,
  type SetRole,
} from './desired-machine-set.ts'
import { fenceposts } from './fenceposts.ts'
import { sourcesOf } from '../machineset/motion.ts'
import { type Arrivals, arrivals, movesTo, receives } from './in-place-moves.ts'
import { countsOf, nextStep } from './next-step.ts'
import { planProportionalScale, type ScaledSet } from './proportional-scale.ts'
import { planText } from './rollout.ts'
import { MachineDeploymentManager, type MachineDeploymentPhase, type MachineDeploymentScope } from './scope.ts'

/** Takes the rollout one step on: makes the set that is needed, scales sets, and clears away those that are done with. */
export const rollOut: MachineDeploymentPhase = async (scope, io) => {
  const { machineDeployment, machineSets } = scope
  if (!machineSets) return proceed()
  // Upstream takes that for an error: its webhooks fill it in on the way in. Here that may come a moment later.
  if (machineDeployment.spec.replicas === undefined) return wait('spec.replicas to be filled in')
  const sets = setsByRole(machineDeployment, machineSets, io.clock.now())
  if (machineDeployment.spec.paused) return scalePaused(scope, sets, io)

  if (!sets.current) {
    const obstacle = await obstacleToCreate(scope, io)
    if (obstacle) return obstacle
  }
  if (sets.eligible.length > 0 && io.inPlace?.runtime.ready === false) {
    return requeue(seconds(1), 'Runtime Extensions are still being discovered')
  }
  const revision = currentRevision(sets.current, sets.old)
  const name = sets.current?.metadata.name ?? machineSetName(machineDeployment, io.random)
  const { plan, movable, arrived } = await nextStep(name, revision, sets, scope, io)
  const target = (set: string, replicas = 0) => plan.find((scale) => scale.set === set)?.to ?? replicas
  if (sets.current) {
    const more = target(name, sets.current.spec.replicas) - (sets.current.spec.replicas ?? 0) - arrived.unseen.length
    const obstacle = more > 0 && (await obstacleToGrow(sets.current, arrived, scope, io))
    if (obstacle) return obstacle
  }
  if (plan.length > 0) io.log.info('Scaling MachineSets', { plan: planText(plan) })
  const role: SetRole = {
    isCurrent: true,
    revision,
    replicas: target(name, sets.current?.spec.replicas),
    moves: receives(movable, arrived),
  }
  // The current set comes first: it must expect the Machines that others are told to move to it.
  const current = sets.current
    ? await update(sets.current, role, scope, io)
    : await create(newMachineSet(machineDeployment, name, role), scope, sets.createReason, io)
  const old: MachineSet[] = []
  for (const set of sets.old) {
    const moves = movable.has(set.metadata.name) ? movesTo(name) : {}
    const replicas = target(set.metadata.name, set.spec.replicas)
    old.push(await update(set, { isCurrent: false, revision: revisionOf(set), replicas, moves }, scope, io))
  }
  scope.machineSets = [...old, current]
  const { annotations } = machineDeployment.metadata
  machineDeployment.metadata.annotations = { ...annotations, [RevisionAnnotation]: String(revision.number) }

  if (plan.length === 0 && isComplete(machineDeployment, scope.machineSets)) {
    await cleanUp(old, scope, io)
    io.inPlace?.forget(keyOf(machineDeployment))
  }
  return untilRolloutAfter(machineDeployment, io.clock.now())
}

/** Why no set can be made now. The last look is at the server: a cache that is behind must not lead to a second set. */
async function obstacleToCreate(
  scope: MachineDeploymentScope,
  { client, signal }: ReconcileContext,
): Promise<Outcome | undefined> {
  const { machineDeployment, machineSets = [], bootstrapTemplate, infrastructureTemplate } = scope
  if ([bootstrapTemplate, infrastructureTemplate].some(({ state }) => state === 'missing' || state === 'unread')) {
    throw new Error('cannot create a MachineSet when templates do not exist')
  }
  const { namespace, name } = machineDeployment.metadata
  const labelSelector = `${MachineDeploymentNameLabel}=${name}`
  const { items } = await client.list(MachineSet, { namespace: namespace!, labelSelector, signal })
  const isNew = (set: MachineSet) => !machineSets.some(({ metadata }) => metadata.uid === set.metadata.uid)
  const unseen = items.filter((set) => isControlledBy(set, machineDeployment, MachineDeployment) && isNew(set))
  return unseen.length === 0 ? undefined : requeue(seconds(1), 'the cache to know all MachineSets')
}

/**
 * Why a set that receives Machines must not make any now: one that the cache does not know of has arrived. Sets may tell sooner that
 * it is theirs no more than the cache of Machines shows where it went.
 */
async function obstacleToGrow(
  current: MachineSet,
  { unseen }: Arrivals,
  { machineDeployment }: MachineDeploymentScope,
  { client, signal }: ReconcileContext,
): Promise<Outcome | undefined> {
  if (sourcesOf(current).size === 0) return undefined
  const { namespace, name } = machineDeployment.metadata
  const labelSelector = `${MachineDeploymentNameLabel}=${name}`
  const { items } = await client.list(Machine, { namespace: namespace!, labelSelector, signal })
  const isKnown = arrivals(current, items).unseen.every((machine) => unseen.includes(machine))
  return isKnown ? undefined : requeue(seconds(1), 'the cache to know all Machines that have moved')
}

async function create(
  input: Input<MachineSet>,
  { machineDeployment }: MachineDeploymentScope,
  reason: string,
  { client, events, log, signal }: ReconcileContext,
): Promise<MachineSet> {
  const name = `${input.metadata.namespace}/${input.metadata.name}`
  log.info('Creating MachineSet', { MachineSet: name, replicas: input.spec.replicas ?? 0, reason })
  try {
    const set = await client.create(MachineSet, input, { fieldManager: MachineDeploymentManager, signal })
    events.event(machineDeployment, 'Normal', 'SuccessfulCreate', `Created MachineSet ${name}`)
    return set
  } catch (err) {
    events.event(machineDeployment, 'Warning', 'FailedCreate', `Failed to create MachineSet ${name}: ${messageOf(err)}`)
    throw err
  }
}

async function update(
  set: MachineSet,
  role: SetRole,
  { machineDeployment }: MachineDeploymentScope,
  io: ReconcileContext,
): Promise<MachineSet> {
  const body = isDeleting(set) ? undefined : machineSetPatch(machineDeployment, set, role)
  return body ? patchSet(set, body, role.replicas, machineDeployment, io) : set
}

async function patchSet(
  set: MachineSet,
  body: object,
  replicas: number,
  machineDeployment: MachineDeployment,
  { client, events, signal }: ReconcileContext,
): Promise<MachineSet> {
  const { namespace, name } = set.metadata
  const before = set.spec.replicas ?? 0
  const isScaled = before !== replicas
  try {
    const options = { fieldManager: MachineDeploymentManager, signal }
    const answer = await client.patch(MachineSet, keyOf(set), { type: 'merge', body }, options)
    const change = `Scaled ${replicas > before ? 'up' : 'down'} MachineSet ${namespace}/${name}: ${before} -> ${replicas}`
    if (isScaled) events.event(machineDeployment, 'Normal', 'SuccessfulScale', change)
    return answer
  } catch (err) {
    const what = isScaled ? 'scale' : 'update'
    const reason = isScaled ? 'FailedScale' : 'FailedUpdate'
    events.event(machineDeployment, 'Warning', reason, `Failed to ${what} MachineSet ${namespace}/${name}: ${messageOf(err)}`)
    throw err
  }
}

/** While paused, replicas are all that changes. */
async function scalePaused(scope: MachineDeploymentScope, { current, old }: SetsByRole, io: ReconcileContext): Promise<Outcome> {
  const { machineDeployment, machineSets = [] } = scope
  const plan = planProportionalScale({
    replicas: machineDeployment.spec.replicas!,
    maxSurge: fenceposts(machineDeployment).maxSurge,
    isRollingUpdate: machineDeployment.spec.rollout?.strategy?.type === 'RollingUpdate',
    existing: machineDeployment.status?.replicas ?? 0,
    current: current && scaledSet(current),
    old: old.map(scaledSet),
  })
  scope.machineSets = await Promise.all(
    machineSets.map(async (set) => {
      const scale = plan.find(({ set: name }) => name === set.metadata.name)
      if (!scale) return set
      const body = { metadata: { annotations: scaleAnnotations(machineDeployment) }, spec: { replicas: scale.to } }
      return patchSet(set, body, scale.to, machineDeployment, io)
    }),
  )
  return wait('the rollout to be resumed: spec.paused is true')
}

function scaledSet(set: MachineSet): ScaledSet {
  const number = (annotation: string): number | undefined => {
    const value = Number.parseInt(set.metadata.annotations?.[annotation] ?? '', 10)
    return Number.isNaN(value) ? undefined : value
  }
  return { ...countsOf(set), desiredThen: number(DesiredReplicasAnnotation), maxThen: number(MaxReplicasAnnotation) }
}

/** All replicas are there, of the current template, and available. */
function isComplete({ spec }: MachineDeployment, sets: readonly MachineSet[]): boolean {
  const { replicas, upToDateReplicas, availableReplicas } = machineDeploymentCounts(sets)
  return [replicas, upToDateReplicas, availableReplicas].every((count) => count === spec.replicas)
}

/** Deletes old sets that have nothing left. */
async function cleanUp(old: readonly MachineSet[], scope: MachineDeploymentScope, io: ReconcileContext): Promise<void> {
  const empty = old.filter(
    ({ metadata, spec, status }) =>
      spec.replicas === 0 && (status?.replicas ?? 0) === 0 && (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0),
  )
  await deleteChildren(MachineSet, empty, scope.machineDeployment, io)
}

/** A rollout that is ordered for later begins without any event. */
function untilRolloutAfter({ spec }: MachineDeployment, now: number): Outcome {
  const after = Date.parse(spec.rollout?.after ?? '')
  return after > now ? requeue(after - now, 'spec.rollout.after') : proceed()
}
