import { clonedKind, fromTemplate, Machine, MachineSet } from '@capstan/api'
import { type Kind, keyOf, messageOf, ownerReference, type UnknownObject, wasRefused } from '@capstan/kube'
import { type ContractRef, type External, refTo } from '../external/get.ts'
import { type Observed } from '../external/observed.ts'
import { machineName, newMachine, wantedMetadata } from './desired-machine.ts'
import { type CreationFailure, MachineSetManager, type MachineSetIO, type MachineSetScope } from './scope.ts'

interface Clone {
  readonly kind: Kind<UnknownObject>
  readonly object: UnknownObject
}

/**
 * Makes one Machine with what it needs: bootstrap config, infrastructure, then the Machine that refers to them. When one is
 * refused, those before it are deleted again; should the answer be lost or the process stop, the next pass finds and deletes them.
 */
export async function createMachine(
  scope: MachineSetScope,
  templates: { bootstrapTemplate: Observed; infrastructureTemplate: Observed & { state: 'found' } },
  io: MachineSetIO,
): Promise<Machine> {
  const { machineSet } = scope
  const { client, events, log, random, signal } = io
  const name = machineName(machineSet, random)
  const made: Clone[] = []
  let failure: CreationFailure['reason'] = 'BootstrapTemplateCloningFailed'
  const clone = async (template: External): Promise<ContractRef> => {
    const kind = clonedKind(template.kind)
    const object = await client.create(
      kind,
      fromTemplate(template.object, {
        name,
        namespace: machineSet.metadata.namespace!,
        clusterName: machineSet.spec.clusterName,
        ...wantedMetadata(machineSet),
        // The Machine becomes the controller once it is there.
        owner: ownerReference(machineSet, MachineSet),
      }),
      { fieldManager: MachineSetManager, signal },
    )
    made.push({ kind, object })
    return refTo(object)
  }

  try {
    const { bootstrapTemplate, infrastructureTemplate } = templates
    const configRef = bootstrapTemplate.state === 'found' ? await clone(bootstrapTemplate.external) : undefined
    failure = 'InfrastructureTemplateCloningFailed'
    const infrastructureRef = await clone(infrastructureTemplate.external)
    failure = 'MachineCreationFailed'
    const machine = await client.create(
      Machine,
      newMachine(machineSet, { name, infrastructureRef, ...(configRef ? { configRef } : {}) }),
      { fieldManager: MachineSetManager, signal },
    )
    events.event(machineSet, 'Normal', 'SuccessfulCreate', `Created Machine "${name}"`)
    return machine
  } catch (err) {
    scope.creationFailure = { reason: failure, message: messageOf(err) }
    events.event(machineSet, 'Warning', 'FailedCreate', `Failed to create Machine "${name}": ${messageOf(err)}`)
    // Without a plain refusal the Machine may be there, and need them. The next pass knows, and deletes what nothing refers to.
    for (const { kind, object } of wasRefused(err) ? made.toReversed() : []) {
      await client.delete(kind, keyOf(object), { preconditions: { uid: object.metadata.uid } }).catch((cause: unknown) => {
        log.warn('Cannot delete what was made for a Machine that was not', { [kind.kind]: keyOf(object), err: cause })
      })
    }
    throw new Error(`failed to create Machine ${name}: ${messageOf(err)}`, { cause: err })
  }
}
