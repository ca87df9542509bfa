import { IPAddress, IPAddressClaim } from '@capstan/api'
import { Namespace } from '@capstan/kube'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DevPool, poolProvider } from './pool-provider.ts'
import { type ProviderEnv, providerEnv } from './provider-env.ts'

let env: ProviderEnv
beforeEach(async () => {
  env = await providerEnv(poolProvider())
  await env.client.create(Namespace, { metadata: { name: 'ns' } })
})
afterEach(() => env.close())

const claim = (name: string) =>
  env.client.create(IPAddressClaim, {
    metadata: { name, namespace: 'ns' },
    spec: { poolRef: { apiGroup: DevPool.group, kind: DevPool.kind, name: 'pool' } },
  })

const createPool = () =>
  env.client.create(DevPool, { metadata: { name: 'pool', namespace: 'ns' }, spec: { addresses: ['10.0.0.1'], prefix: 24 } })

async function addresses(): Promise<string[]> {
  await env.settle()
  const { items } = await env.client.list(IPAddress, { namespace: 'ns' })
  return items.map(({ metadata, spec }) => `${metadata.name}: ${spec.address}`)
}

test('a claim that is older than its pool gets an address when the pool is created', async () => {
  await claim('early')
  expect(await addresses()).toEqual([])
  await createPool()
  expect(await addresses()).toEqual(['early: 10.0.0.1'])
})

test('a claim gets the address that the deletion of another claim releases', async () => {
  await createPool()
  await claim('first')
  await env.settle()
  await claim('second')
  expect(await addresses()).toEqual(['first: 10.0.0.1'])
  await env.client.delete(IPAddressClaim, { name: 'first', namespace: 'ns' })
  expect(await addresses()).toEqual(['second: 10.0.0.1'])
})
