/** Who owns which field, after a write that is not an apply. */
import type { UnknownObject } from '@capstan/kube'
import type { Call, Plane } from './plane.ts'

/** Gives the object with its ownership brought up to date. */
export function trackFields(_plane: Plane, _call: Call, object: UnknownObject, _old: UnknownObject | undefined): UnknownObject {
  return object
}
