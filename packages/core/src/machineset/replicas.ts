import { DisableMachineCreateAnnotation, Machine, MachineSetMoveMachinesToMachineSetAnnotation } from '@capstan/api'
import { type Outcome, proceed, requeue, wait } from '@capstan/controller'
import { messageOf, seconds, TerminalError } from '@capstan/kube'
import { createMachine } from './create-machine.ts'
import { deleteChildren } from '../children.ts'
import { machinesToDelete } from './deletion-priority.ts'
import { liveMachines } from './machines.ts'
import { surplus } from './plan-moves.ts'
import { moveMachines } from './move-machines.ts'
import { removeOrphans } from './orphans.ts'
import { preflight } from './preflight.ts'
import { missingText } from './templates.ts'
import type { CreationFailure, MachineSetIO, MachineSetPhase, MachineSetScope } from './scope.ts'

/**
 * Deletes infrastructure machines and bootstrap configs whose Machine does not exist; creates missing Machines; deletes surplus Machines, or
 * moves them to the MachineSet that updates them in place.
 */
export const syncReplicas: MachineSetPhase = async (scope, io) => {
  const { machineSet, machines } = scope
  const { replicas } = machineSet.spec
  // Upstream returns an error, since its webhooks set the default. The write that sets the field triggers the next reconcile.
  if (replicas === undefined) return wait('spec.replicas to be defaulted')
  if (!machines) return proceed()
  await removeOrphans(scope, io)
  if (machines.length > replicas) return scaleDown(scope, replicas, io)
  if (machines.length < replicas) return scaleUp(scope, replicas, io)
  return proceed()
}

async function scaleUp(scope: MachineSetScope, replicas: number, io: MachineSetIO): Promise<Outcome> {
  const { machineSet, machines = [] } = scope
  if (machineSet.metadata.annotations?.[DisableMachineCreateAnnotation] === 'true') return proceed()
  const { bootstrapTemplate, infrastructureTemplate } = scope
  // Otherwise, the preflight checks would put the error of reading the bootstrap template, such as an unknown kind, into the status, and an
  // unread infrastructure template would be reported as missing. Upstream fails earlier, when it lists the infrastructure machines and
  // bootstrap configs.
  if (bootstrapTemplate.state === 'unread' || infrastructureTemplate.state === 'unread') return wait('templates to be read')
  try {
    scope.preflightProblems = await preflight(scope, 'Scale up', io)
  } catch (err) {
    scope.preflightProblems = [messageOf(err)]
    throw err
  }
  if (scope.preflightProblems.length > 0) return wait(scope.preflightProblems.join('; '))
  const { bootstrap, infrastructureRef } = machineSet.spec.template.spec
  if (bootstrapTemplate.state === 'missing') {
    const text = 'failed to create BootstrapConfig: failed to compute desired BootstrapConfig'
    const problem = missingText(machineSet, bootstrap.configRef!)
    throw recordCreationFailure(scope, 'BootstrapTemplateCloningFailed', `${text}: ${problem}`)
  }
  if (infrastructureTemplate.state !== 'found') {
    const text = 'failed to create InfraMachine: failed to compute desired InfraMachine'
    const problem = missingText(machineSet, infrastructureRef)
    throw recordCreationFailure(scope, 'InfrastructureTemplateCloningFailed', `${text}: ${problem}`)
  }

  // The framework waits until the cache has the writes of this process. After a change of leader, the cache may lack writes of the previous
  // leader.
  const live = await liveMachines(machineSet, io)
  if (live.length !== machines.length) return requeue(seconds(1), 'the cache to contain all Machines')
  const { log } = io
  log.info('Scaling up MachineSet', { from: machines.length, to: replicas })
  const createdMachines: Machine[] = []
  try {
    for (let missing = replicas - live.length; missing > 0; missing--) {
      createdMachines.push(await createMachine(scope, { bootstrapTemplate, infrastructureTemplate }, io))
    }
  } finally {
    scope.machines = [...machines, ...createdMachines]
    scope.created = createdMachines.length
  }
  return proceed()
}

/** Records that no Machine can be created, and returns the error to throw. The watch of the template triggers the next reconcile. */
function recordCreationFailure(scope: MachineSetScope, reason: CreationFailure['reason'], message: string): Error {
  scope.creationFailure = { reason, message }
  return new TerminalError(message)
}

async function scaleDown(scope: MachineSetScope, replicas: number, io: MachineSetIO): Promise<Outcome> {
  const { machineSet, machines = [] } = scope
  const count = surplus(machineSet, machines, replicas)
  if (count === 0) return wait('Machines that have moved here to be acknowledged by the MachineDeployment')
  const targetName = machineSet.metadata.annotations?.[MachineSetMoveMachinesToMachineSetAnnotation]
  io.log.info('Scaling down MachineSet', {
    from: machines.length,
    to: machines.length - count,
    ...(targetName ? { moveTo: targetName } : {}),
  })
  if (targetName) await moveMachines(scope, targetName, count, io)
  else {
    const surplusMachines = machinesToDelete(machines, count, machineSet.spec.deletion?.order, io.clock.now())
    await deleteChildren(Machine, surplusMachines, machineSet, io)
  }
  return proceed()
}
