/** Reads the state of an in-place update from the annotations of a Machine. Upstream: internal/util/inplace, v1.14. */
import type { KubeObject } from '@capstan/kube'
import { UpdateInProgressAnnotation } from '../../core/well-known.ts'
import { UpdateMachine } from '../hooks/update-machine.ts'
import { isHookPending } from '../pending-hooks.ts'

type WithMetadata = Pick<KubeObject, 'metadata'>

/** Whether the object has the annotation of an update. Without the pending hook, the Machine's owner has not prepared all objects yet. */
export const isMarkedForUpdate = ({ metadata }: WithMetadata): boolean =>
  metadata.annotations?.[UpdateInProgressAnnotation] !== undefined

/** Whether the hook UpdateMachine is pending: all objects have the desired spec, and the hook is called until it is done. */
export const isUpdatePending = (machine: WithMetadata): boolean => isHookPending(UpdateMachine, machine)

/** Whether the Machine has either annotation: it is then neither ready nor up to date, and no other operation is started on it. */
export const isUpdateInProgress = (machine: WithMetadata): boolean => isMarkedForUpdate(machine) || isUpdatePending(machine)
