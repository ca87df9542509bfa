/** Reads and adopts the objects that a MachinePool refers to: its bootstrap config and its infrastructure machine pool. */
import { MachinePool } from '@capstan/api'
import type { Index, MapFunction } from '@capstan/controller'
import { controllerReference, keyOf } from '@capstan/kube'
import { adopt } from '../external/adopt.ts'
import type { ContractRef } from '../external/get.ts'
import { type Observed, toObserved } from '../external/observed.ts'
import { observeExternal } from '../external/observe.ts'
import { referenceText, referredText } from '../external/reference.ts'
import type { MachinePoolIO, MachinePoolScope } from './scope.ts'

/** Reads an object to which the MachinePool refers, and makes the MachinePool the controller of that object. */
export async function observeAndAdopt({ machinePool }: MachinePoolScope, io: MachinePoolIO, ref: ContractRef): Promise<Observed> {
  const external = await observeExternal(io, ref, machinePool.metadata.namespace!, machinePoolsOfReference)
  if (!external) return toObserved(external)
  const object = await adopt(io, external.kind, external.object, {
    owner: controllerReference(machinePool, MachinePool),
    clusterName: machinePool.spec.clusterName,
    // Upstream's MachinePool controller sets the whole owner reference in each reconcile. Its Cluster and Machine controllers do not.
    replacesBlockOwnerDeletion: true,
  })
  return toObserved({ ...external, object })
}

/** MachinePools by the objects that they refer to. */
const byReference: Index<MachinePool> = {
  name: 'MachinePool by reference',
  kind: MachinePool,
  values: ({ metadata, spec: { template } }) =>
    [template.spec.infrastructureRef, template.spec.bootstrap.configRef].flatMap((ref) =>
      ref ? referenceText(ref, metadata.namespace) : [],
    ),
}

/** Maps a bootstrap config or an infrastructure machine pool to the MachinePools that refer to it. */
export const machinePoolsOfReference: MapFunction = (object, cache) => cache.byIndex(byReference, referredText(object)).map(keyOf)
