/** Conditions declared as a table: types and reasons that are not in the table do not compile. */
import type { Condition } from './schema.ts'

/** A condition computed by a reconcile, before it is merged with the condition that the object has. */
export interface NewCondition {
  readonly type: string
  readonly status: Condition['status']
  readonly reason: string
  readonly message: string
  /** Only for a mirrored condition, which keeps its source's time. */
  readonly lastTransitionTime?: string
}

/** One declared condition type, which creates conditions with the declared reasons. */
export interface ConditionType<Type extends string = string, Reason extends string = string> {
  readonly type: Type
  readonly reasons: readonly Reason[]
  true(reason: Reason, message?: string): NewCondition
  false(reason: Reason, message?: string): NewCondition
  unknown(reason: Reason, message?: string): NewCondition
}

/**
 * Declares the conditions of a kind.
 *
 * @example
 * export const MachineConditions = conditionTypes({ InfrastructureReady: ['Ready', 'NotReady', 'InternalError'] })
 * MachineConditions.InfrastructureReady.false('NotReady', 'DevMachine status.initialization.provisioned is false')
 */
export function conditionTypes<const Table extends { readonly [type: string]: readonly string[] }>(
  table: Table,
): { readonly [Type in keyof Table & string]: ConditionType<Type, Table[Type][number]> } {
  const types: Record<string, ConditionType> = {}
  for (const [type, reasons] of Object.entries(table)) {
    const conditionWith =
      (status: Condition['status']) =>
      (reason: string, message = ''): NewCondition => ({ type, status, reason, message })
    types[type] = { type, reasons, true: conditionWith('True'), false: conditionWith('False'), unknown: conditionWith('Unknown') }
  }
  return types as never
}
