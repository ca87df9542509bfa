/** Devices that others use already are for administrators alone, who say so by a label of the namespace. */
import { type FieldError, forbidden } from '@capstan/kube'
import type { WriteServices } from '@capstan/apiserver/kinds'
import type { DeviceClaim, ResourceClaimStatus } from '../schemas/types.ts'

const Label = 'resource.kubernetes.io/admin-access'

/** Where a claim asks for it first. Upstream names the field without the member that it is in, and templates like claims. */
export function asksForAdminAccess({ requests }: DeviceClaim): string | undefined {
  const index = (requests ?? []).findIndex(({ exactly }) => exactly?.adminAccess === true)
  return index < 0 ? undefined : `spec.devices.requests[${index}].adminAccess`
}

/** Where a status grants it first. */
export function grantsAdminAccess({ allocation }: ResourceClaimStatus): string | undefined {
  const index = (allocation?.devices.results ?? []).findIndex(({ adminAccess }) => adminAccess === true)
  return index < 0 ? undefined : `status.allocation.devices.results[${index}].adminAccess`
}

/** `field` is absent when the request has no such field. */
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
