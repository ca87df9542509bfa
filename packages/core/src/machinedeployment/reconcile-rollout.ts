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
import { type Input, isControlledByUid, isDeleting, isReason, keyOf, messageOf, seconds } from '@capstan/kube'
import { applyIntent } from '../apply-intent.ts'
import { deleteChildren } from '../children.ts'
import { machineDeploymentCounts } from './counts.ts'
import { setsByRole, type SetsByRole } from './current-set.ts'
import {
  currentRevision,
  hashOf,
  machineSetIntent,
  machineSetName,
  newMachineSet,
  revisionOf,
  type SetRole,
} from './desired-machine-set.ts'
import { fenceposts } from './fenceposts.ts'
import { sourcesOf } from '../machineset/plan-moves.ts'
import { type Arrivals, arrivals, moveAnnotations, receiveAnnotations } from './in-place-moves.ts'
import { countsOf, nextStep } from './next-step.ts'
import { planProportionalScale, type ScaledSet } from './proportional-scale.ts'
import { planText } from './rollout-plan.ts'
import { MachineDeploymentManager, type MachineDeploymentPhase, type MachineDeploymentScope } from './scope.ts'

/**
 * Performs the next step of the rollout: creates the current MachineSet if it is missing, and scales MachineSets. After the rollout, deletes old
 * MachineSets without replicas.
 */
export const reconcileRollout: MachineDeploymentPhase = async (scope, io) => {
  const { machineDeployment, machineSets } = scope
  if (!machineSets) return proceed()
  // Upstream returns an error here, because its webhooks always set the default. Waiting is enough: a write of the field triggers a reconcile.
  if (machineDeployment.spec.replicas === undefined) return wait('spec.replicas to be defaulted')
  const sets = setsByRole(machineDeployment, machineSets, io.clock.now())
  // Fails before the step of the rollout if a set lacks the label with its hash.
  machineSets.forEach(hashOf)
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
    const missingReplicas =
      target(name, sets.current.spec.replicas) - (sets.current.spec.replicas ?? 0) - arrived.uncounted.length
    const obstacle = missingReplicas > 0 && (await obstacleToGrow(sets.current, arrived, scope, io))
    if (obstacle) return obstacle
  }
  if (plan.length > 0) io.log.info('Scaling MachineSets', { plan: planText(plan) })
  const role: SetRole = {
    isCurrent: true,
    revision,
    replicas: target(name, sets.current?.spec.replicas),
    moves: receiveAnnotations(movable, arrived),
  }
  // The current set is written first: it must expect the Machines that other sets then move to it.
  const current = sets.current
    ? await update(sets.current, role, scope, io)
    : await create(newMachineSet(machineDeployment, name, role), scope, sets.createReason, io)
  const old: MachineSet[] = []
  for (const set of sets.old) {
    const moves = movable.has(set.metadata.name) ? moveAnnotations(name) : {}
    const replicas = target(set.metadata.name, set.spec.replicas)
    old.push(await update(set, { isCurrent: false, revision: revisionOf(set), replicas, moves }, scope, io))
  }
  scope.machineSets = [...old, current]
  const { annotations } = machineDeployment.metadata
  machineDeployment.metadata.annotations = { ...annotations, [RevisionAnnotation]: revision.current }

  // Assigned before old sets are deleted, so that the v1beta1 status is updated even if a deletion fails.
  scope.rolloutIncomplete = false
  if (plan.length === 0 && isComplete(machineDeployment, scope.machineSets)) {
    await deleteEmptySets(old, scope, io)
    io.inPlace?.forget(keyOf(machineDeployment))
  }
  return untilRolloutAfter(machineDeployment, io.clock.now())
}

/**
 * Returns the outcome of the reconcile if no set can be created now. The final check reads from the API server: a stale cache must not lead
 * to a second set.
 * @throws Error when a template does not exist or could not be read
 */
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
  const uncachedSets = items.filter((set) => isControlledByUid(set, machineDeployment) && isNew(set))
  return uncachedSets.length === 0 ? undefined : requeue(seconds(1), 'the cache to contain all MachineSets')
}

/**
 * Returns the outcome of the reconcile if the current set receives Machines from other sets and must not create Machines now, because a
 * Machine has arrived that the cache does not show yet. The cached status of its old set may be newer than the cached Machines: the Machine
 * then counts in neither set.
 */
async function obstacleToGrow(
  current: MachineSet,
  { uncounted }: Arrivals,
  { machineDeployment }: MachineDeploymentScope,
  { client, signal }: ReconcileContext,
): Promise<Outcome | undefined> {
  if (sourcesOf(current).size === 0) return undefined
  const { namespace, name } = machineDeployment.metadata
  const labelSelector = `${MachineDeploymentNameLabel}=${name}`
  const { items } = await client.list(Machine, { namespace: namespace!, labelSelector, signal })
  const isKnown = arrivals(current, items).uncounted.every((machine) => uncounted.includes(machine))
  return isKnown ? undefined : requeue(seconds(1), 'the cache to contain all Machines that have moved')
}

async function create(
  input: Input<MachineSet>,
  { machineDeployment }: MachineDeploymentScope,
  reason: string,
  io: ReconcileContext,
): Promise<MachineSet> {
  const { events, log } = io
  const name = `${input.metadata.namespace}/${input.metadata.name}`
  log.info('Creating MachineSet', { MachineSet: name, replicas: input.spec.replicas ?? 0, reason })
  try {
    const set = await applyIntent(io, MachineSet, undefined, input, MachineDeploymentManager)
    events.event(
      machineDeployment,
      'Normal',
      'SuccessfulCreate',
      `Created MachineSet ${name} with ${input.spec.replicas ?? 0} replicas`,
    )
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
  const { events } = io
  const { replicas } = role
  const { namespace, name } = set.metadata
  const currentReplicas = set.spec.replicas ?? 0
  const isScaled = currentReplicas !== replicas
  try {
    const intent = machineSetIntent(machineDeployment, set, role)
    const written = await applyIntent(io, MachineSet, set, intent, MachineDeploymentManager)
    const change = `Scaled ${replicas > currentReplicas ? 'up' : 'down'} MachineSet ${name}: ${currentReplicas} -> ${replicas}`
    if (isScaled) events.event(machineDeployment, 'Normal', 'SuccessfulScale', change)
    return written
  } catch (err) {
    // The set was deleted meanwhile: an apply with the uid of an object that does not exist leads to a conflict.
    if (isDeleting(set) && causeIsConflict(err)) return set
    const text = `Failed to update MachineSet ${namespace}/${name}: ${messageOf(err)}`
    events.event(machineDeployment, 'Warning', 'FailedUpdate', text)
    throw err
  }
}

const causeIsConflict = (err: unknown): boolean => err instanceof Error && isReason(err.cause, 'Conflict')

/**
 * Reconciles the sets while `spec.paused` is true: creates no set, updates the fields that propagate in place, and scales the sets by
 * `planProportionalScale`. In a rolling update, this function spreads a change of replicas over several sets that have replicas: the share of
 * a set depends on the difference between its annotation `max-replicas` and the new total. As upstream, this annotation is set to the new
 * total first. Unless `spec.replicas` is 0, each share is therefore zero, and the largest set gets the whole change.
 */
async function scalePaused(scope: MachineDeploymentScope, sets: SetsByRole, io: ReconcileContext): Promise<Outcome> {
  const { machineDeployment } = scope
  const revision = currentRevision(sets.current, sets.old)
  const updateInPlaceFields = (set: MachineSet, role: Pick<SetRole, 'isCurrent' | 'revision'>) =>
    update(set, { ...role, replicas: set.spec.replicas ?? 0 }, scope, io)
  const current = sets.current && (await updateInPlaceFields(sets.current, { isCurrent: true, revision }))
  const old: MachineSet[] = []
  for (const set of sets.old) old.push(await updateInPlaceFields(set, { isCurrent: false, revision: revisionOf(set) }))
  const { annotations } = machineDeployment.metadata
  // As upstream, the revision is empty when there is no current set.
  const revisionText = current ? revision.current : ''
  if ((annotations?.[RevisionAnnotation] ?? '') !== revisionText)
    machineDeployment.metadata.annotations = { ...annotations, [RevisionAnnotation]: revisionText }
  const plan = planProportionalScale({
    replicas: machineDeployment.spec.replicas!,
    maxSurge: fenceposts(machineDeployment).maxSurge,
    isRollingUpdate: machineDeployment.spec.rollout?.strategy?.type === 'RollingUpdate',
    existing: machineDeployment.status?.replicas ?? 0,
    current: current && scaledSet(current),
    old: old.map(scaledSet),
  })
  let machineSets = [...old, ...(current ? [current] : [])]
  // As upstream, sets after the first failure are not scaled.
  for (const { set: name, to } of plan) {
    const set = machineSets.find(({ metadata }) => metadata.name === name)!
    const scaled = await scalePausedSet(set, to, machineDeployment, io)
    machineSets = machineSets.map((existing) => (existing === set ? scaled : existing))
  }
  scope.machineSets = machineSets
  scope.rolloutIncomplete = false
  return wait('the rollout to be resumed: spec.paused is true')
}

async function scalePausedSet(
  set: MachineSet,
  replicas: number,
  machineDeployment: MachineDeployment,
  { client, events, signal }: ReconcileContext,
): Promise<MachineSet> {
  const { namespace, name } = set.metadata
  try {
    const written = await client.patch(MachineSet, keyOf(set), { type: 'merge', body: { spec: { replicas } } }, { signal })
    const change = `Scaled MachineSet ${namespace}/${name}: ${set.spec.replicas ?? 0} -> ${replicas}`
    events.event(machineDeployment, 'Normal', 'SuccessfulScale', change)
    return written
  } catch (err) {
    const text = `Failed to scale MachineSet ${namespace}/${name}: ${messageOf(err)}`
    events.event(machineDeployment, 'Warning', 'FailedScale', text)
    throw err
  }
}

function scaledSet(set: MachineSet): ScaledSet {
  const number = (annotation: string): number | undefined => {
    const value = Number.parseInt(set.metadata.annotations?.[annotation] ?? '', 10)
    return Number.isNaN(value) ? undefined : value
  }
  return { ...countsOf(set), recordedDesired: number(DesiredReplicasAnnotation), recordedMax: number(MaxReplicasAnnotation) }
}

/** Whether all replicas exist, have the current template and are available. */
function isComplete({ spec }: MachineDeployment, sets: readonly MachineSet[]): boolean {
  const { replicas, upToDateReplicas, availableReplicas } = machineDeploymentCounts(sets)
  return [replicas, upToDateReplicas, availableReplicas].every((count) => count === spec.replicas)
}

/** Deletes old sets without replicas, up to the first failure. */
async function deleteEmptySets(old: readonly MachineSet[], scope: MachineDeploymentScope, io: ReconcileContext): Promise<void> {
  const { machineDeployment } = scope
  for (const set of old) {
    const { name, generation = 0 } = set.metadata
    const { replicas = 0, observedGeneration = 0 } = set.status ?? {}
    if (set.spec.replicas !== 0 || replicas !== 0 || observedGeneration < generation) continue
    try {
      await deleteChildren(MachineSet, [set], machineDeployment, io)
    } catch (err) {
      const problem = messageOf(err)
      io.events.event(machineDeployment, 'Warning', 'FailedDelete', `Failed to delete MachineSet "${name}": ${problem}`)
      throw new Error(`failed to delete MachineSet ${name}: ${problem}`, { cause: err })
    }
  }
}

/** Requeues at a future `rollout.after`, because no watch event reports that time. */
function untilRolloutAfter({ spec }: MachineDeployment, now: number): Outcome {
  const rolloutAfter = Date.parse(spec.rollout?.after ?? '')
  return rolloutAfter > now ? requeue(rolloutAfter - now, 'spec.rollout.after') : proceed()
}
