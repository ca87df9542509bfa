import {
  fromTemplate,
  isMarkedForUpdate,
  isUpdatePending,
  Machine,
  MachineSet,
  PendingAcknowledgeMoveAnnotation,
  PendingHooksAnnotation,
  pendingHooksText,
  TemplateClonedFromGroupKindAnnotation,
  TemplateClonedFromNameAnnotation,
  UpdateInProgressAnnotation,
  UpdateMachine,
} from '@capstan/api'
import { proceed } from '@capstan/controller'
import { keyOf, keyText, messageOf, ownerOfKind, ownerReference } from '@capstan/kube'
import { applyIntent } from '../apply-intent.ts'
import type { ContractRef } from '../external/get.ts'
import { observeExternal } from '../external/observe.ts'
import { externalOf, type Observed } from '../external/observed.ts'
import { machineIntent } from './desired-machine.ts'
import { isAcknowledged } from './plan-moves.ts'
import { type MachineSetIO, MachineSetManager, type MachineSetPhase, type MachineSetScope } from './scope.ts'
import { throwAggregate } from '../aggregate-errors.ts'

/**
 * Starts in-place updates of Machines that have moved to this set, as soon as `isAcknowledged` is true for them: writes the set's desired
 * state to each Machine, its infrastructure machine and its bootstrap config. The move has set the annotation `update-in-progress` on the
 * Machine; the two other objects get this annotation together with their new spec. The hook UpdateMachine is marked pending last: until
 * then, the next reconcile repeats an interrupted start.
 */
export const startUpdates: MachineSetPhase = async (scope, io) => {
  const { machineSet, machines } = scope
  if (!machines) return proceed()
  const errors: unknown[] = []
  const updatedMachines: Machine[] = []
  for (const machine of machines) {
    const isDue = isMarkedForUpdate(machine) && !isUpdatePending(machine) && isAcknowledged(machineSet, machine)
    if (!isDue) {
      updatedMachines.push(machine)
      continue
    }
    try {
      updatedMachines.push(await startUpdate(machine, scope, io))
    } catch (err) {
      updatedMachines.push(machine)
      const text = `failed to complete triggering in-place update for Machine ${keyText(keyOf(machine))}`
      errors.push(new Error(`${text}: ${messageOf(err)}`, { cause: err }))
    }
  }
  scope.machines = updatedMachines
  throwAggregate(errors)
  return proceed()
}

async function startUpdate(machine: Machine, scope: MachineSetScope, io: MachineSetIO): Promise<Machine> {
  const { client, events, log, signal } = io
  const { infrastructureRef, bootstrap } = machine.spec
  // Infrastructure is written first, because it is the most likely to be rejected.
  await applyTemplateTo(infrastructureRef, scope.infrastructureTemplate, machine, scope, io)
  if (bootstrap.configRef) await applyTemplateTo(bootstrap.configRef, scope.bootstrapTemplate, machine, scope, io)

  const { version, failureDomain } = scope.machineSet.spec.template.spec
  const key = keyOf(machine)
  const next = { ...machine, spec: { ...machine.spec, version, failureDomain } } as Machine
  await applyIntent(io, Machine, machine, machineIntent(scope.machineSet, next), MachineSetManager)

  const annotations = {
    [PendingAcknowledgeMoveAnnotation]: null,
    [PendingHooksAnnotation]: pendingHooksText(machine, { add: [UpdateMachine.name] }),
  }
  const started = await client.patch(Machine, key, { type: 'merge', body: { metadata: { annotations } } }, { signal })
  log.info('Completed triggering in-place update for Machine', { Machine: machine.metadata.name })
  events.event(started, 'Normal', 'SuccessfulStartInPlaceUpdate', 'Machine starting in-place update')
  return started
}

/**
 * Applies this set's template to an infrastructure machine or bootstrap config that was created for another set. Labels and other
 * annotations are written by `syncMachines`, with another field manager.
 */
async function applyTemplateTo(
  ref: ContractRef,
  observedTemplate: Observed,
  machine: Machine,
  { machineSet }: MachineSetScope,
  io: MachineSetIO,
): Promise<void> {
  const namespace = machineSet.metadata.namespace!
  const external = await observeExternal(io, ref, namespace, () => [])
  if (!external) throw new Error(`failed to get ${ref.kind} ${namespace}/${ref.name}: it does not exist`)
  const template = externalOf(observedTemplate)
  if (!template) throw new Error(`the template of ${ref.kind} ${namespace}/${ref.name} does not exist or could not be read`)
  const { metadata, ...cloned } = fromTemplate(template.object, {
    name: ref.name,
    namespace,
    clusterName: machine.spec.clusterName,
    labels: {},
    annotations: {},
    // The set stays an owner until the Machine owns the object.
    ...(ownerOfKind(external.object, Machine) ? {} : { owner: ownerReference(machineSet, MachineSet) }),
  })
  const { annotations = {}, ownerReferences } = metadata
  const intent = {
    ...cloned,
    metadata: {
      name: ref.name,
      namespace,
      annotations: {
        ...pick(annotations, TemplateClonedFromNameAnnotation, TemplateClonedFromGroupKindAnnotation),
        [UpdateInProgressAnnotation]: '',
      },
      ...(ownerReferences ? { ownerReferences } : {}),
    },
  }
  await applyIntent(io, external.kind, external.object, intent, MachineSetManager)
}

const pick = (annotations: Readonly<Record<string, string>>, ...names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (annotations[name] === undefined ? [] : [[name, annotations[name]]])))
