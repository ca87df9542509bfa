/**
 * Tests of the rules for core's defaulting, validation and conversion of IPAddresses and IPAddressClaims. Each test runs once for each
 * contract version of its rule, and sends its requests in this version of the API. The test of `core.ipam.versions` also reads v1beta2.
 */
import { IPAddress, IPAddressClaim } from '@capstan/api'
import type { ContractVersion } from '@capstan/api/contract'
import { ipAddressAdmission, ipAddressClaimAdmission } from '@capstan/core'
import { type Kind, type UnknownObject, unknownKind } from '@capstan/kube'
import { type CoreEnv, coreEnv } from '@capstan/testing'
import { expect } from 'vitest'
import type { CoreRuleId } from './core-rules.ts'
import { testRule } from './rule-test.suite.ts'

const key = { namespace: 'default', name: 'ip' }
const poolRef = { apiGroup: 'ipam.example.com', kind: 'DevPool', name: 'pool' }
const claim = { clusterName: 'demo', poolRef }
const address = { address: '10.0.0.2', prefix: 24, gateway: '10.0.0.1', claimRef: { name: 'ip' }, poolRef }

class Ipam {
  readonly env: CoreEnv
  readonly claims: Kind<UnknownObject>
  readonly addresses: Kind<UnknownObject>

  constructor(env: CoreEnv, version: ContractVersion) {
    const inVersion = ({ group, kind, plural }: Kind) => unknownKind({ apiVersion: `${group}/${version}`, kind, plural })
    this.env = env
    this.claims = inVersion(IPAddressClaim)
    this.addresses = inVersion(IPAddress)
  }

  create(kind: Kind<UnknownObject>, spec: object): Promise<UnknownObject> {
    return this.env.client.create(kind, { metadata: key, spec } as never)
  }

  /** Patches the spec. Returns the error message of the rejection, or `accepted`. */
  async change(kind: Kind<UnknownObject>, spec: object): Promise<string> {
    return outcomeOf(this.env.client.patch(kind, key, { type: 'merge', body: { spec } }))
  }
}

const outcomeOf = (request: Promise<unknown>): Promise<string> =>
  request.then(
    () => 'accepted',
    (err: Error) => err.message,
  )

const testIpam = (id: CoreRuleId, testBody: (ipam: Ipam) => Promise<void>) =>
  testRule(
    id,
    (env, version) => testBody(new Ipam(env, version)),
    () => coreEnv({ admission: [ipAddressAdmission, ipAddressClaimAdmission] }),
  )

testIpam('core.ipam.immutable-claim', async (ipam) => {
  const { claims, env } = ipam
  await ipam.create(claims, claim)
  for (const spec of [{ clusterName: 'other' }, { poolRef: { name: 'other' } }])
    expect(await ipam.change(claims, spec)).toContain('spec: Forbidden: IPAddressClaim spec is immutable. Diff: ')
  const body = { metadata: { labels: { team: 'a' } } }
  expect(await outcomeOf(env.client.patch(claims, key, { type: 'merge', body }))).toBe('accepted')
})

testIpam('core.ipam.immutable-address', async (ipam) => {
  const { addresses, env } = ipam
  await ipam.create(addresses, address)
  for (const spec of [{ address: '10.0.0.3' }, { prefix: 25 }, { gateway: '10.0.0.9' }, { poolRef: { name: 'other' } }])
    expect(await ipam.change(addresses, spec)).toContain('spec: Forbidden: IPAddress spec is immutable. Diff: ')
  const body = { metadata: { finalizers: ['ipam.cluster.x-k8s.io/protect-address'] } }
  expect(await outcomeOf(env.client.patch(addresses, key, { type: 'merge', body }))).toBe('accepted')
})

testIpam('core.ipam.valid-address', async (ipam) => {
  const outcomeOfCreate = (spec: object) => outcomeOf(ipam.create(ipam.addresses, { ...address, ...spec }))
  expect(await outcomeOfCreate({ address: '10.0.0' })).toContain('spec.address: Invalid value: "10.0.0": not a valid IP address')
  expect(await outcomeOfCreate({ gateway: 'x' })).toContain('spec.gateway: Invalid value: "x": not a valid IP address')
  expect(await outcomeOfCreate({ prefix: 33 })).toContain(
    'spec.prefix: Invalid value: 33: prefix is too large for an IPv4 address',
  )
  expect(await outcomeOfCreate({ address: 'fd00::2', gateway: 'fd00::1', prefix: 64 })).toBe('accepted')
})

testIpam('core.ipam.pool-of-claim', async (ipam) => {
  const other = { ...address, poolRef: { ...poolRef, name: 'other' } }
  await ipam.create(ipam.claims, claim)
  expect(await outcomeOf(ipam.create(ipam.addresses, other))).toContain(
    'the referenced pool is different from the pool referenced by the claim this address should fulfill',
  )
  await ipam.env.client.delete(ipam.claims, key)
  expect(await outcomeOf(ipam.create(ipam.addresses, other))).toBe('accepted')
})

testIpam('core.ipam.defaults', async (ipam) => {
  const { addresses, claims, env } = ipam
  const { gateway: _, ...withoutGateway } = address
  const { clusterName: _name, ...withoutCluster } = claim
  await ipam.create(claims, withoutCluster)
  await ipam.create(addresses, withoutGateway)
  await env.provisionCluster()
  for (const [kind, spec] of [
    [claims, withoutCluster],
    [addresses, withoutGateway],
  ] as const) {
    const { metadata, spec: stored } = await env.client.get(kind, key)
    expect(stored).toEqual(spec)
    expect(metadata).toMatchObject({ generation: 1 })
    for (const field of ['labels', 'annotations', 'finalizers', 'ownerReferences']) expect(metadata).not.toHaveProperty(field)
  }
})

testIpam('core.ipam.versions', async (ipam) => {
  const { addresses, claims, env } = ipam
  await ipam.create(addresses, address)
  await ipam.create(claims, claim)
  const at = '2026-01-01T00:00:00Z'
  const condition = { type: 'Ready', status: 'True', reason: 'Allocated', message: '', lastTransitionTime: at }
  const isOld = claims.version === 'v1beta1'
  // A client of v1beta1 writes the conditions of v1beta2 to status.v1beta2.
  const reported = isOld ? { v1beta2: { conditions: [condition] } } : { conditions: [condition] }
  const body = { status: { addressRef: { name: 'ip' }, ...reported } }
  await env.client.patch(claims, key, { type: 'merge', body }, { subresource: 'status' })
  expect(await env.client.get(claims, key)).toMatchObject({ spec: claim, ...body })
  expect(await env.client.get(addresses, key)).toMatchObject({ spec: address })
  expect(await env.get(IPAddress, 'ip')).toMatchObject({ apiVersion: 'ipam.cluster.x-k8s.io/v1beta2', spec: address })
  expect(await env.get(IPAddressClaim, 'ip')).toMatchObject({
    spec: claim,
    status: { addressRef: { name: 'ip' }, conditions: [condition] },
  })
})
