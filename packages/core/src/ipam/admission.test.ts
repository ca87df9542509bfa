import type { IPAddress, IPAddressClaim } from '@capstan/api'
import { type AdmissionRequest, type KubeObject, notFound, type Reader, StatusError } from '@capstan/kube'
import { expect, test } from 'vitest'
import { ipAddressAdmission, ipAddressClaimAdmission } from './admission.ts'

const metadata = { name: 'x', namespace: 'default', uid: '', resourceVersion: '', creationTimestamp: '' }
const poolRef = { name: 'pool', kind: 'Pool', apiGroup: 'g.io' }
const spec: IPAddress['spec'] = { claimRef: { name: 'claim' }, poolRef, address: '10.0.0.1', prefix: 24, gateway: '10.0.0.254' }
const address = (overrides: Partial<IPAddress['spec']> = {}): IPAddress => ({
  apiVersion: 'ipam.cluster.x-k8s.io/v1beta2',
  kind: 'IPAddress',
  metadata,
  spec: { ...spec, ...overrides },
})
const claim = (overrides: Partial<IPAddressClaim['spec']> = {}): IPAddressClaim => ({
  apiVersion: 'ipam.cluster.x-k8s.io/v1beta2',
  kind: 'IPAddressClaim',
  metadata,
  spec: { clusterName: 'a', poolRef, ...overrides },
})

/** The claim that the API server returns; an Error if the read fails, `undefined` if the claim does not exist. */
type StoredClaim = IPAddressClaim | Error | undefined

/** Returns the text of the error that admission throws; otherwise `invalid` if admission returns validation errors, else `allowed`. */
async function admit(
  admission: typeof ipAddressAdmission,
  object: KubeObject,
  oldObject?: KubeObject,
  stored?: StoredClaim,
): Promise<string> {
  const reader = {
    get: (kind: { group: string; plural: string }) => {
      if (stored instanceof Error) return Promise.reject(stored)
      return stored ? Promise.resolve(stored) : Promise.reject(notFound(kind, 'claim'))
    },
  } as unknown as Reader
  const request = { operation: oldObject ? 'UPDATE' : 'CREATE', oldObject, dryRun: false, userInfo: {}, reader, warn: () => {} }
  try {
    const errors = await admission.validate!(object, request as AdmissionRequest<KubeObject>)
    return errors.length === 0 ? 'allowed' : 'invalid'
  } catch (err) {
    expect((err as StatusError).code).toBe(403)
    return (err as StatusError).message
  }
}
const admitNew = (overrides: Partial<IPAddress['spec']>, stored?: StoredClaim) =>
  admit(ipAddressAdmission, address(overrides), undefined, stored)

test('address and gateway must be IP addresses, and the prefix must fit an IPv4 address', async () => {
  expect(await admitNew({})).toBe('allowed')
  expect(await admitNew({ address: 'fe80::1', prefix: 128 })).toBe('allowed')
  expect(await admitNew({ address: '10.0.0' })).toBe('spec.address: Invalid value: "10.0.0": not a valid IP address')
  expect(await admitNew({ prefix: 64 })).toBe('spec.prefix: Invalid value: 64: prefix is too large for an IPv4 address')
  expect(await admitNew({ address: 'x', gateway: '42' })).toBe(
    '[spec.address: Invalid value: "x": not a valid IP address, spec.gateway: Invalid value: "42": not a valid IP address]',
  )
})

test('rejects an IPAddress whose pool differs from that of its claim, or whose claim cannot be read', async () => {
  expect(await admitNew({}, claim())).toBe('allowed')
  expect(await admitNew({}, claim({ poolRef: { ...poolRef, name: 'other' } }))).toBe(
    'spec.poolRef: Invalid value: {"name":"pool","kind":"Pool","apiGroup":"g.io"}: the referenced pool is different from the pool referenced by the claim this address should fulfill',
  )
  expect(await admitNew({}, new Error('broken'))).toBe('spec.claimRef: Internal error: failed to fetch claim: broken')
})

// Recorded from upstream's types and go-cmp v0.7.0.
test.each<[string, Partial<IPAddress['spec']>, string]>([
  [
    'the address',
    { address: '10.0.0.2' },
    `v1beta2.IPAddressSpec{
    ClaimRef: {Name: "claim"},
    PoolRef:  {Name: "pool", Kind: "Pool", APIGroup: "g.io"},
-   Address:  "10.0.0.1",
+   Address:  "10.0.0.2",
    Prefix:   &24,
    Gateway:  "10.0.0.254",
  }`,
  ],
  [
    'the prefix',
    { prefix: 28 },
    `v1beta2.IPAddressSpec{
    ClaimRef: {Name: "claim"},
    PoolRef:  {Name: "pool", Kind: "Pool", APIGroup: "g.io"},
    Address:  "10.0.0.1",
-   Prefix:   &24,
+   Prefix:   &28,
    Gateway:  "10.0.0.254",
  }`,
  ],
  [
    'the gateway',
    { gateway: '10.0.0.253' },
    `v1beta2.IPAddressSpec{
    ... // 2 identical fields
    Address: "10.0.0.1",
    Prefix:  &24,
-   Gateway: "10.0.0.254",
+   Gateway: "10.0.0.253",
  }`,
  ],
  [
    'the pool',
    { poolRef: { ...poolRef, name: 'other' } },
    `v1beta2.IPAddressSpec{
    ClaimRef: {Name: "claim"},
    PoolRef: v1beta2.IPPoolReference{
-     Name:     "pool",
+     Name:     "other",
      Kind:     "Pool",
      APIGroup: "g.io",
    },
    Address: "10.0.0.1",
    Prefix:  &24,
    Gateway: "10.0.0.254",
  }`,
  ],
  [
    'the claim',
    { claimRef: { name: 'other' } },
    `v1beta2.IPAddressSpec{
-   ClaimRef: v1beta2.IPAddressClaimReference{Name: "claim"},
+   ClaimRef: v1beta2.IPAddressClaimReference{Name: "other"},
    PoolRef:  {Name: "pool", Kind: "Pool", APIGroup: "g.io"},
    Address:  "10.0.0.1",
    ... // 2 identical fields
  }`,
  ],
])('a change of %s is rejected with the difference', async (_, overrides, diff) => {
  expect(await admit(ipAddressAdmission, address(overrides), address())).toBe(
    `spec: Forbidden: IPAddress spec is immutable. Diff: ${diff}`,
  )
})

test('rejects a changed spec of a claim, and accepts changed labels of a claim and an unchanged IPAddress', async () => {
  expect(await admit(ipAddressClaimAdmission, claim({ clusterName: 'b' }), claim())).toBe(
    `spec: Forbidden: IPAddressClaim spec is immutable. Diff: v1beta2.IPAddressClaimSpec{
-   ClusterName: "a",
+   ClusterName: "b",
    PoolRef:     {Name: "pool", Kind: "Pool", APIGroup: "g.io"},
  }`,
  )
  expect(await admit(ipAddressClaimAdmission, { ...claim(), metadata: { ...metadata, labels: { a: 'b' } } }, claim())).toBe(
    'allowed',
  )
  expect(await admit(ipAddressAdmission, address(), address())).toBe('allowed')
})
