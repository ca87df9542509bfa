/** How far an update in place has come, as the marks on a Machine say. Upstream: internal/util/inplace, v1.14. */
import type { KubeObject } from '@capstan/kube'
import { UpdateInProgressAnnotation } from '../../core/well-known.ts'
import { UpdateMachine } from '../hooks/update-machine.ts'
import { isHookPending } from '../pending-hooks.ts'

type WithMetadata = Pick<KubeObject, 'metadata'>

/** The first mark: the object takes part in an update. On the Machine it alone means that its owner has not prepared all yet. */
export const isMarkedForUpdate = ({ metadata }: WithMetadata): boolean =>
  metadata.annotations?.[UpdateInProgressAnnotation] !== undefined

/** The second mark: all objects are as desired, and the hook is to be called until it is done. */
export const isUpdatePending = (machine: WithMetadata): boolean => isHookPending(UpdateMachine, machine)

/** One mark is enough: such a Machine is neither ready nor up to date, and nothing else is begun with it. */
export const isUpdateInProgress = (machine: WithMetadata): boolean => isMarkedForUpdate(machine) || isUpdatePending(machine)
