/** Reads the state of an in-place update from the annotations of a Machine. Upstream: internal/util/inplace, v1.14. */
import type { KubeObject } from '@capstan/kube'
import { UpdateInProgressAnnotation } from '../../core/well-known.ts'
import { UpdateMachine } from '../hooks/update-machine.ts'
import { isHookPending } from '../pending-hooks.ts'

type WithMetadata = Pick<KubeObject, 'metadata'>

/**
 * Whether the object has the annotation of an in-place update. While a Machine has it and UpdateMachine is not pending, the Machine's owner
 * may still have to write the desired spec to some of the objects.
 */
export const isMarkedForUpdate = ({ metadata }: WithMetadata): boolean =>
  metadata.annotations?.[UpdateInProgressAnnotation] !== undefined

/**
 * Whether the hook UpdateMachine is pending. All objects then have the desired spec. The hook is called until the update is complete, or a
 * user removes the annotation of the update from the Machine.
 */
export const isUpdatePending = (machine: WithMetadata): boolean => isHookPending(UpdateMachine, machine)

/**
 * Whether the Machine is marked for an update, or UpdateMachine is pending. The Machine is then neither ready nor up to date, and is not
 * moved to another MachineSet.
 */
export const isUpdateInProgress = (machine: WithMetadata): boolean => isMarkedForUpdate(machine) || isUpdatePending(machine)
