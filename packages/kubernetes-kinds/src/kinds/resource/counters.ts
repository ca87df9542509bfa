import { type FieldError, required } from '@capstan/kube'
import type { Counter } from '../schemas/types.ts'
import { mapErrors } from './lists.ts'
import { labelErrors, MaxName } from './names.ts'

const limits = { max: 32, shownKey: MaxName }

/** Validates the counters of a counter set in a ResourceSlice: the available amounts, or the amounts that a device consumes. */
export const counterErrors = (field: string, counters: { readonly [name: string]: Counter } = {}): FieldError[] =>
  Object.keys(counters).length === 0 ? [required(field)] : mapErrors(field, counters, limits, labelErrors)
