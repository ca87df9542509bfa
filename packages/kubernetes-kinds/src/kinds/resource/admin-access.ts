/**
 * Rejects admin access to devices, except in namespaces with a label that administrators set. Admin access includes devices that are
 * already in use.
 */
import { type FieldError, forbidden } from '@capstan/kube'
import type { WriteServices } from '@capstan/apiserver/kinds'
import type { DeviceClaim, ResourceClaimStatus } from '../schemas/types.ts'

const Label = 'resource.kubernetes.io/admin-access'

/**
 * Returns the path of the first request for admin access in a claim; `undefined` if there is none. As upstream, the path omits `exactly`
 * and, in a template, the outer `spec`.
 */
export function adminAccessRequestPath({ requests }: DeviceClaim): string | undefined {
  const index = (requests ?? []).findIndex(({ exactly }) => exactly?.adminAccess === true)
  return index < 0 ? undefined : `spec.devices.requests[${index}].adminAccess`
}

/** Returns the path of the first allocation with admin access in a status; `undefined` if there is none. */
export function adminAccessResultPath({ allocation }: ResourceClaimStatus): string | undefined {
  const index = (allocation?.devices.results ?? []).findIndex(({ adminAccess }) => adminAccess === true)
  return index < 0 ? undefined : `status.allocation.devices.results[${index}].adminAccess`
}

/**
 * Returns an error for admin access at the path `field` in a namespace without the label. `field` is `undefined` for an object without
 * admin access, which causes no error.
 */
export function adminAccessErrors(
  { store }: Pick<WriteServices, 'store'>,
  namespace: string | undefined,
  field: string | undefined,
): FieldError[] {
  if (field === undefined) return []
  const labels = store.get({ resource: 'namespaces', namespace: '', name: namespace ?? '' })?.metadata.labels
  const text = `admin access to devices requires the \`${Label}: true\` label on the containing namespace`
  return labels?.[Label] === 'true' ? [] : [forbidden(field, text)]
}
