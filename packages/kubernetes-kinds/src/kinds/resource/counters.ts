import { type FieldError, required } from '@capstan/kube'
import type { Counter } from '../schemas/types.ts'
import { mapErrors } from './lists.ts'
import { labelErrors, MaxName } from './names.ts'

const limits = { max: 32, shownKey: MaxName }

/**
 * Validates the number and the names of counters: those of a counter set in a ResourceSlice, or those that a device consumes. Amounts are not
 * validated here.
 */
export const counterErrors = (field: string, counters: { readonly [name: string]: Counter } = {}): FieldError[] =>
  Object.keys(counters).length === 0 ? [required(field)] : mapErrors(field, counters, limits, labelErrors)
