import type { BuiltinKind } from '../builtin-kind.ts'
import { ageColumn, at, column, list, nameColumn } from '../columns.ts'
import { nullIfNone } from '../go-nulls.ts'
import type { ResourceV1ResourceClaim as ResourceClaim } from '../schemas/types.ts'
import { adminAccessErrors, adminAccessRequestPath, adminAccessResultPath } from './admin-access.ts'
import { claimStatusErrors, dropFreedDevices } from './claim-status.ts'
import { defaultRequests, deviceClaimErrors } from './device-requests.ts'
import { immutableStruct } from './immutable-struct.ts'
import { statusPermissionErrors } from './status-permissions.ts'
import { defaultTolerations } from './taints.ts'

/** Upstream: pkg/registry/resource/resourceclaim, v1.36. */
export const resourceclaims: BuiltinKind<ResourceClaim> = {
  returnsDeleted: true,
  columns: [
    nameColumn,
    column('State', (o) => {
      const isDeleted = o.metadata.deletionTimestamp !== undefined
      const isReserved = list(o, 'status', 'reservedFor').length > 0
      const states = at(o, 'status', 'allocation') ? ['allocated', ...(isReserved ? ['reserved'] : [])] : []
      if (states.length === 0 && !isDeleted) states.push('pending')
      return [...(isDeleted ? ['deleted'] : []), ...states].join(',')
    }),
    ageColumn,
  ],
  default({ spec, status }) {
    defaultRequests(spec.devices)
    for (const { tolerations } of status.allocation?.devices.results ?? []) defaultTolerations(tolerations)
    for (const device of status.devices ?? []) nullIfNone(device, 'conditions')
  },
  resetFields: { '': [['status']], status: [['metadata'], ['spec']] },
  subresourceWrites: {
    // Unlike most built-in kinds, claims accept no changes of labels, annotations, finalizers and owner references on /status.
    // Upstream: ResetObjectMetaForStatus.
    status(claim, { spec, metadata: { labels, annotations, finalizers, ownerReferences } }) {
      claim.spec = spec
      const { labels: _l, annotations: _a, finalizers: _f, ownerReferences: _o, ...metadata } = claim.metadata
      claim.metadata = {
        ...metadata,
        ...(labels ? { labels } : {}),
        ...(annotations ? { annotations } : {}),
        ...(finalizers ? { finalizers } : {}),
        ...(ownerReferences ? { ownerReferences } : {}),
      }
    },
  },
  prepare({ status }, old, { subresource }) {
    if (old && subresource === 'status') dropFreedDevices(status, old.status)
  },
  validate(claim, old, context) {
    const { spec, status, metadata } = claim
    const { server, subresource } = context
    if (!old) {
      return [
        ...adminAccessErrors(server, metadata.namespace, adminAccessRequestPath(spec.devices)),
        ...deviceClaimErrors('spec.devices', spec.devices),
      ]
    }
    if (subresource !== 'status') return immutableStruct('spec', 'resource/v1.ResourceClaimSpec', spec, old.spec)
    const addedAdminAccess = adminAccessResultPath(old.status) === undefined ? adminAccessResultPath(status) : undefined
    return [
      ...adminAccessErrors(server, metadata.namespace, addedAdminAccess),
      ...statusPermissionErrors(claim, old, context),
      ...claimStatusErrors(claim, old),
    ]
  },
}
