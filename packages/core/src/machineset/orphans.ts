import { clonedKind, type Machine, MachineSet } from '@capstan/api'
import {
  parseApiVersion,
  isDeleting,
  isOwnedBy,
  isReason,
  type Kind,
  keyOf,
  type KubeObject,
  type UnknownObject,
} from '@capstan/kube'
import { externalKind } from '../external/contract-version.ts'
import { liveMachines, machinesOfCluster, plainSelector } from './machines.ts'
import type { MachineSetIO, MachineSetScope } from './scope.ts'

/**
 * Deletes bootstrap configs and infrastructure machines that this set owns, that have the labels of its selector, and whose Machine
 * does not exist. Such objects remain when the process stops or a response is lost before the Machine is created, and when the creation
 * of the Machine fails and the objects cannot be deleted again.
 */
export async function removeOrphans(scope: MachineSetScope, io: MachineSetIO): Promise<void> {
  const { machineSet, machines = [], bootstrapTemplate, infrastructureTemplate } = scope
  const { bootstrap, infrastructureRef } = machineSet.spec.template.spec
  const orphans: { kind: Kind<UnknownObject>; object: UnknownObject }[] = []
  // Includes references to templates that do not exist any more, because their clones may exist.
  const templates = [
    { ref: bootstrap.configRef, state: bootstrapTemplate.state },
    { ref: infrastructureRef, state: infrastructureTemplate.state },
  ]
  for (const { ref, state } of templates) {
    if (!ref || state === 'unread') continue
    const kind = clonedKind((await externalKind(io.cache, ref)).kind)
    await io.watch(kind, () => [])
    const { items } = await io.cache.list(kind, {
      namespace: machineSet.metadata.namespace!,
      labelSelector: plainSelector(machineSet).text,
    })
    for (const object of items) if (isOrphan(object, machineSet, machines)) orphans.push({ kind, object })
  }
  if (orphans.length === 0) return

  // The cache may lack the Machine, or the Machine may have moved to another set.
  const live = [...(await liveMachines(machineSet, io)), ...machinesOfCluster(machineSet, io)]
  for (const { kind, object } of orphans) {
    if (!isOrphan(object, machineSet, live)) continue
    io.log.info('Deleting an object whose Machine does not exist', { [kind.kind]: keyOf(object) })
    try {
      const { uid } = object.metadata
      await io.client.delete(kind, keyOf(object), { preconditions: { uid }, signal: io.signal })
    } catch (err) {
      if (!isReason(err, 'NotFound')) throw err
    }
  }
}

/** Reports whether the object is owned by this set, is not referenced by a Machine, and is not being deleted. Pure. */
const isOrphan = (object: KubeObject, machineSet: MachineSet, machines: readonly Machine[]): boolean =>
  !isDeleting(object) && isOwnedBy(object, machineSet, MachineSet) && !machines.some((machine) => refersTo(machine, object))

const refersTo = ({ spec }: Machine, { apiVersion, kind, metadata }: KubeObject): boolean =>
  [spec.infrastructureRef, spec.bootstrap.configRef].some(
    (ref) => ref?.kind === kind && ref.name === metadata.name && ref.apiGroup === parseApiVersion(apiVersion).group,
  )
