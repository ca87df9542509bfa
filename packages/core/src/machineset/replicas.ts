import { DisableMachineCreateAnnotation, Machine } from '@capstan/api'
import { type Outcome, proceed, requeue, wait } from '@capstan/controller'
import { isDeleting, isReason, keyOf, messageOf, seconds } from '@capstan/kube'
import { createMachine } from './create-machine.ts'
import { machinesToDelete } from './deletion-priority.ts'
import { liveMachines } from './machines.ts'
import { removeOrphans } from './orphans.ts'
import { preflight } from './preflight.ts'
import { isOldRevision } from './templates.ts'
import type { MachineSetIO, MachineSetPhase, MachineSetScope } from './scope.ts'

/** Makes Machines until there are as many as wanted, or deletes what is too much. */
export const syncReplicas: MachineSetPhase = async (scope, io) => {
  const { machineSet, machines } = scope
  const { replicas } = machineSet.spec
  if (replicas === undefined) {
    const { namespace, name } = machineSet.metadata
    throw new Error(`the replicas field in spec for MachineSet ${namespace}/${name} is nil, this should not be allowed`)
  }
  if (!machines) return proceed()
  await removeOrphans(scope, io)
  if (machines.length > replicas) return scaleDown(scope, machines.length - replicas, io)
  if (machines.length < replicas) return scaleUp(scope, replicas, io)
  return proceed()
}

async function scaleUp(scope: MachineSetScope, replicas: number, io: MachineSetIO): Promise<Outcome> {
  const { machineSet, machines = [] } = scope
  if (machineSet.metadata.annotations?.[DisableMachineCreateAnnotation] === 'true') return proceed()
  const { bootstrapTemplate, infrastructureTemplate } = scope
  if (infrastructureTemplate.state !== 'found' || bootstrapTemplate.state === 'missing' || bootstrapTemplate.state === 'unread') {
    return isOldRevision(scope) ? proceed() : wait('templates to exist')
  }
  try {
    scope.preflightProblems = await preflight(scope, io)
  } catch (err) {
    scope.preflightProblems = [messageOf(err)]
    throw err
  }
  if (scope.preflightProblems.length > 0) return wait(scope.preflightProblems.join('; '))

  // The framework waits for its own writes; after a change of leader it is somebody else's that the cache may not have yet.
  const live = await liveMachines(machineSet, io)
  if (live.length !== machines.length) return requeue(seconds(1), 'the cache to know all Machines')
  const { log } = io
  log.info('Scaling up MachineSet', { from: machines.length, to: replicas })
  const made: Machine[] = []
  try {
    for (let missing = replicas - live.length; missing > 0; missing--) {
      made.push(await createMachine(scope, { bootstrapTemplate, infrastructureTemplate }, io))
    }
  } finally {
    scope.machines = [...machines, ...made]
  }
  return proceed()
}

async function scaleDown(scope: MachineSetScope, surplus: number, io: MachineSetIO): Promise<Outcome> {
  const { machineSet, machines = [] } = scope
  io.log.info('Scaling down MachineSet', { from: machines.length, to: machines.length - surplus })
  await deleteMachines(scope, machinesToDelete(machines, surplus, machineSet.spec.deletion?.order, io.clock.now()), io)
  return proceed()
}

/** Asks for the deletion of Machines that are not going already. All are tried before the first failure is thrown. */
export async function deleteMachines(
  { machineSet }: MachineSetScope,
  machines: readonly Machine[],
  io: MachineSetIO,
): Promise<void> {
  const { client, events, signal } = io
  const errors: unknown[] = []
  for (const machine of machines) {
    if (isDeleting(machine)) continue
    const { name, uid } = machine.metadata
    try {
      await client.delete(Machine, keyOf(machine), { preconditions: { uid }, signal })
      events.event(machineSet, 'Normal', 'SuccessfulDelete', `Deleted Machine "${name}"`)
    } catch (err) {
      if (isReason(err, 'NotFound')) continue
      events.event(machineSet, 'Warning', 'FailedDelete', `Failed to delete Machine "${name}": ${messageOf(err)}`)
      errors.push(err)
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, errors.map(messageOf).join('; '))
}
