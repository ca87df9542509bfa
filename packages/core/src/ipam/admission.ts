/** Admission of IPAddresses and IPAddressClaims. Upstream: core/webhooks/admission/ipaddress.go, ipaddressclaim.go, v1.14. */
import { IPAddress, IPAddressClaim } from '@capstan/api'
import {
  type Admission,
  admission,
  equal,
  type FieldError,
  forbidden,
  invalid,
  messageOf,
  orAbsent,
  type Reader,
  StatusError,
} from '@capstan/kube'
import { isIP } from 'node:net'
import { aggregateText } from '../aggregate-errors.ts'
import { specDiff } from './spec-diff.ts'

/** Validates new IPAddresses, and rejects changes of their spec. */
export const ipAddressAdmission: Admission = admission<IPAddress>({
  kind: IPAddress,
  operations: ['CREATE', 'UPDATE'],
  async validate(address, { oldObject, reader }) {
    if (oldObject) rejectIfAny(immutableErrors(IPAddress.kind, oldObject.spec, address.spec, addressType))
    else rejectIfAny([...addressErrors(address), ...(await poolErrors(address, reader))])
    return []
  },
})

/** Rejects changes of the spec of IPAddressClaims. */
export const ipAddressClaimAdmission: Admission = admission<IPAddressClaim>({
  kind: IPAddressClaim,
  operations: ['CREATE', 'UPDATE'],
  validate(claim, { oldObject }) {
    if (oldObject) rejectIfAny(immutableErrors(IPAddressClaim.kind, oldObject.spec, claim.spec, claimType))
    return []
  },
})

/** Throws the errors as upstream does: without the object's name, and with code 403. */
function rejectIfAny(errors: readonly FieldError[]): void {
  if (errors.length === 0) return
  throw new StatusError('Forbidden', aggregateText(errors.map(({ field, text }) => `${field}: ${text}`)))
}

function addressErrors({ spec: { address, gateway, prefix } }: IPAddress): FieldError[] {
  const version = isIP(address)
  return [
    ...(version === 0 ? [invalid('spec.address', address, 'not a valid IP address')] : []),
    ...(version === 4 && prefix > 32 ? [invalid('spec.prefix', prefix, 'prefix is too large for an IPv4 address')] : []),
    ...(gateway && isIP(gateway) === 0 ? [invalid('spec.gateway', gateway, 'not a valid IP address')] : []),
  ]
}

/** Requires that the address comes from the pool of its claim, if the claim exists. */
async function poolErrors({ metadata, spec: { claimRef, poolRef } }: IPAddress, reader: Reader): Promise<FieldError[]> {
  let claim: IPAddressClaim | undefined
  try {
    claim = await orAbsent(reader.get(IPAddressClaim, { namespace: metadata.namespace!, name: claimRef.name }))
  } catch (err) {
    const text = `Internal error: failed to fetch claim: ${messageOf(err)}`
    return [{ type: 'InternalError', field: 'spec.claimRef', text }]
  }
  if (!claim || equal(poolOf(claim.spec.poolRef), poolOf(poolRef))) return []
  const problem = 'the referenced pool is different from the pool referenced by the claim this address should fulfill'
  return [invalid('spec.poolRef', poolOf(poolRef), problem)]
}

const poolOf = ({ name, kind, apiGroup }: IPAddress['spec']['poolRef']) => ({ name, kind, apiGroup })

function immutableErrors(kind: string, before: object, after: object, type: Parameters<typeof specDiff>[2]): FieldError[] {
  if (equal(before, after)) return []
  return [forbidden('spec', `${kind} spec is immutable. Diff: ${specDiff(before as never, after as never, type)}`)]
}

/** Upstream's Go types: their names, and their fields in order. */
const poolType = { name: 'v1beta2.IPPoolReference', fields: { Name: 'name', Kind: 'kind', APIGroup: 'apiGroup' } } as const
const addressType = {
  name: 'v1beta2.IPAddressSpec',
  fields: {
    ClaimRef: ['claimRef', { name: 'v1beta2.IPAddressClaimReference', fields: { Name: 'name' } }],
    PoolRef: ['poolRef', poolType],
    Address: 'address',
    Prefix: 'prefix',
    Gateway: 'gateway',
  },
} as const
const claimType = {
  name: 'v1beta2.IPAddressClaimSpec',
  fields: { ClusterName: 'clusterName', PoolRef: ['poolRef', poolType] },
} as const
