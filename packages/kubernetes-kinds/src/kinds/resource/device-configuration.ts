/** Validates opaque configurations, which only drivers interpret. */
import { type FieldError, invalid, isRecord, required, tooLong, writeJSON } from '@capstan/kube'
import type { OpaqueDeviceConfiguration } from '../schemas/types.ts'
import { driverErrors } from './names.ts'

/** Maximum number of configurations in a device class, and in the spec of a claim. */
export const MaxConfigurations = 32
const MaxSize = 10 * 1024

/** Validates a device configuration. With `isStored`, the size is not checked: a stored configuration may be older than the limit. */
export function configurationErrors(
  field: string,
  { opaque }: { readonly opaque?: OpaqueDeviceConfiguration },
  isStored = false,
): FieldError[] {
  if (!opaque) return [required(`${field}.opaque`)]
  return [
    ...driverErrors(`${field}.opaque.driver`, opaque.driver),
    ...rawObjectErrors(`${field}.opaque.parameters`, opaque.parameters, isStored),
  ]
}

/** Requires a JSON object of at most 10 KiB. With `isStored`, the size is not checked. */
export function rawObjectErrors(field: string, value: unknown, isStored = false): FieldError[] {
  if (value === undefined || value === null) return [required(field)]
  if (!isStored && Buffer.byteLength(writeJSON(value)) > MaxSize) return [tooLong(field, MaxSize)]
  return isRecord(value) ? [] : [invalid(field, '<value omitted>', 'must be a valid JSON object')]
}
