import { clonedKind, fromTemplate, Machine, MachineSet } from '@capstan/api'
import { type Kind, keyOf, messageOf, ownerReference, type Random, type UnknownObject, wasRejected } from '@capstan/kube'
import { applyIntent, handOverMetadata } from '../apply-intent.ts'
import { type ContractRef, type External, refTo } from '../external/get.ts'
import { type Observed } from '../external/observed.ts'
import { machineName, newMachine, wantedMetadata } from './desired-machine.ts'
import { type CreationFailure, MachineSetManager, type MachineSetIO, type MachineSetScope, MetadataManager } from './scope.ts'

interface Clone {
  readonly kind: Kind<UnknownObject>
  readonly object: UnknownObject
}

/** Prefixes of the error texts, the same as upstream's. */
const ErrorPrefixes: { readonly [reason in CreationFailure['reason']]: string } = {
  BootstrapTemplateCloningFailed: 'failed to create BootstrapConfig: ',
  InfrastructureTemplateCloningFailed: 'failed to create InfraMachine: ',
  MachineCreationFailed: '',
}

/**
 * Creates one Machine with its objects: bootstrap config, infrastructure, then the Machine that refers to them. When a creation is
 * rejected, the objects that were created before are deleted. After a lost response or a crash, the next reconcile deletes them if the
 * Machine does not exist.
 */
export async function createMachine(
  scope: MachineSetScope,
  templates: { bootstrapTemplate: Observed; infrastructureTemplate: Observed & { state: 'found' } },
  io: MachineSetIO,
): Promise<Machine> {
  const { machineSet } = scope
  const { client, events, log, random, signal } = io
  const name = nameOrFailure(scope, random)
  const createdObjects: Clone[] = []
  let failureReason: CreationFailure['reason'] = 'BootstrapTemplateCloningFailed'
  const clone = async (template: External): Promise<ContractRef> => {
    const kind = clonedKind(template.kind)
    const metadata = wantedMetadata(machineSet)
    const intent = fromTemplate(template.object, {
      name,
      namespace: machineSet.metadata.namespace!,
      clusterName: machineSet.spec.clusterName,
      ...metadata,
      // Not as the controller: the Machine becomes the controller owner once it exists.
      owner: ownerReference(machineSet, MachineSet),
    })
    const object = await applyIntent(io, kind, undefined, intent, MachineSetManager)
    createdObjects.push({ kind, object })
    await handOverMetadata(io, kind, object, { from: MachineSetManager, to: MetadataManager }, metadata)
    return refTo(object)
  }

  try {
    const { bootstrapTemplate, infrastructureTemplate } = templates
    const configRef = bootstrapTemplate.state === 'found' ? await clone(bootstrapTemplate.external) : undefined
    failureReason = 'InfrastructureTemplateCloningFailed'
    const infrastructureRef = await clone(infrastructureTemplate.external)
    failureReason = 'MachineCreationFailed'
    const intent = newMachine(machineSet, { name, infrastructureRef, ...(configRef ? { configRef } : {}) })
    const machine = await applyIntent(io, Machine, undefined, intent, MachineSetManager)
    events.event(machineSet, 'Normal', 'SuccessfulCreate', `Created Machine "${name}"`)
    return machine
  } catch (err) {
    scope.creationFailure = { reason: failureReason, message: `${ErrorPrefixes[failureReason]}${messageOf(err)}` }
    // If the request for the Machine was not rejected, the Machine may exist and need these objects. The next reconcile deletes objects that
    // no Machine refers to.
    for (const { kind, object } of wasRejected(err) ? createdObjects.toReversed() : []) {
      await client
        .delete(kind, keyOf(object), { preconditions: { uid: object.metadata.uid }, signal })
        .catch((cause: unknown) => {
          log.warn('Cannot delete an object of a Machine that was not created', { [kind.kind]: keyOf(object), err: cause })
        })
    }
    throw new Error(`failed to create Machine ${name}: ${messageOf(err)}`, { cause: err })
  }
}

function nameOrFailure(scope: MachineSetScope, random: Random): string {
  try {
    return machineName(scope.machineSet, random)
  } catch (err) {
    scope.creationFailure = { reason: 'MachineCreationFailed', message: messageOf(err) }
    throw new Error(`failed to create Machine: failed to compute desired Machine: ${messageOf(err)}`, { cause: err })
  }
}
