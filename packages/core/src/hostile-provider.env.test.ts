/** Providers that misbehave: core reports them in conditions, and its writes stay bounded. */
import { Machine, MachinePool } from '@capstan/api'
import { minutes, type Transport } from '@capstan/kube'
import { aMachinePool, type CoreEnv, conditionText, coreEnv, DevConfig, DevMachine, DevMachinePool } from '@capstan/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

let env: CoreEnv
/** Write requests of core. */
let writes = 0
/** Size of the bodies of these write requests. */
let bytes = 0

const counted = (transport: Transport): Transport => ({
  ...transport,
  close: () => transport.close(),
  watch: (request, signal) => transport.watch(request, signal),
  send(request, signal) {
    if (request.verb !== 'get' && request.verb !== 'list') {
      writes++
      bytes += JSON.stringify(request.body ?? '').length
    }
    return transport.send(request, signal)
  },
})

beforeEach(async () => {
  env = await coreEnv({ between: counted })
})
afterEach(() => env.close())

/** Counts the writes of core from `work` to ten minutes later. */
async function writesOf(work: () => Promise<void>): Promise<{ writes: number; bytes: number }> {
  const before = { writes, bytes }
  await work()
  await env.advance(minutes(10))
  return { writes: writes - before.writes, bytes: bytes - before.bytes }
}

async function aPool(): Promise<void> {
  await env.provisionCluster()
  await env.create(DevConfig, 'mp')
  await env.create(DevMachinePool, 'mp')
  await env.create(MachinePool, 'mp', { spec: aMachinePool().spec })
  await env.patch(DevConfig, 'mp', {
    status: { initialization: { dataSecretCreated: true }, dataSecretName: 'mp-data' },
  })
}

const pool = () => env.get(MachinePool, 'mp')
const provisioned = { initialization: { provisioned: true } }

describe('an infrastructure machine', () => {
  const machine = () => env.get(Machine, 'm')

  test('with a status of 900 KB is read, and only fields of the contract are copied', async () => {
    await env.provisionCluster()
    await env.provisionMachine('m')
    const junk = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`junk${i}`, 'x'.repeat(1000)]))
    const work = await writesOf(() => env.patch(DevMachine, 'm', { status: { ...provisioned, ...junk } }))
    expect(conditionText(await machine(), 'InfrastructureReady')).toMatch(/^True/)
    expect(JSON.stringify(await machine()).length).toBeLessThan(20_000)
    expect(work.writes).toBeLessThan(20)
  })

  test('with a message of 900 KB in its condition Ready leads to a condition of bounded length', async () => {
    await env.provisionCluster()
    await env.provisionMachine('m')
    const Ready = {
      type: 'Ready',
      status: 'False',
      reason: 'Broken',
      message: 'x'.repeat(900_000),
      lastTransitionTime: '2026-01-01T00:00:00Z',
    }
    const work = await writesOf(() => env.patch(DevMachine, 'm', { status: { ...provisioned, conditions: [Ready] } }))
    expect((conditionText(await machine(), 'InfrastructureReady') ?? '').length).toBeLessThan(40_000)
    expect(work.writes).toBeLessThan(60)
  })

  test.each([
    ['initialization is a list', { status: { initialization: ['provisioned'] } }],
    ['provisioned is a string', { status: { initialization: { provisioned: 'true' } } }],
    ['addresses are a number', { status: { ...provisioned, addresses: 7 } }],
    ['conditions are a string', { status: { ...provisioned, conditions: 'Ready' } }],
    ['providerID is an object', { spec: { providerID: { id: 'x' } }, status: provisioned }],
  ])('whose %s leads to a condition, and affects no other Machine', async (_, body) => {
    await env.provisionCluster()
    await env.create(DevConfig, 'm')
    await env.create(DevMachine, 'm')
    await env.create(Machine, 'm', {
      spec: {
        clusterName: 'demo',
        bootstrap: { dataSecretName: 'data' },
        infrastructureRef: { apiGroup: 'infra.example.com', kind: 'DevMachine', name: 'm' },
      },
    })
    const work = await writesOf(() => env.patch(DevMachine, 'm', body))
    expect(work.writes).toBeLessThan(60)
    expect(conditionText(await machine(), 'InfrastructureReady')).toMatch(/^False NotReady: /)
    await env.provisionMachine('other')
    expect(conditionText(await env.get(Machine, 'other'), 'InfrastructureReady')).toMatch(/^True/)
  })

  test('that repeatedly disappears and returns leads to a condition, and to a proportional number of writes', async () => {
    await env.provisionCluster()
    await env.provisionMachine('m')
    const { spec } = (await env.get(DevMachine, 'm')) as unknown as { spec: object }
    const work = await writesOf(async () => {
      for (let i = 0; i < 20; i++) {
        await env.client.delete(DevMachine, { namespace: 'default', name: 'm' })
        await env.settle()
        await env.create(DevMachine, 'm', { spec })
        await env.settle()
      }
      await env.client.delete(DevMachine, { namespace: 'default', name: 'm' })
    })
    expect(conditionText(await machine(), 'InfrastructureReady')).toMatch(/^False ObjectDeleted: /)
    expect(work.writes).toBeLessThan(20 * 10)
  })
})

describe('an infrastructure machine pool', () => {
  const idsOf = (count: number) => Array.from({ length: count }, (_, i) => `dev:///pool-${i}`)

  test('with 10,000 provider IDs is copied in few writes', async () => {
    await aPool()
    const ids = idsOf(10_000)
    const work = await writesOf(() =>
      env.patch(DevMachinePool, 'mp', { spec: { providerIDList: ids }, status: { ...provisioned, replicas: 10_000 } }),
    )
    expect((await pool()).spec.providerIDList).toHaveLength(10_000)
    expect(work.writes).toBeLessThan(30)
    expect(work.bytes).toBeLessThan(3_000_000)
  })

  test('with more than 10,000 provider IDs is not copied, and a condition has the reason', async () => {
    await aPool()
    const work = await writesOf(() =>
      env.patch(DevMachinePool, 'mp', { spec: { providerIDList: idsOf(10_001) }, status: { ...provisioned, replicas: 10_001 } }),
    )
    expect((await pool()).spec.providerIDList).toBeUndefined()
    expect(JSON.stringify((await pool()).status)).toContain('spec.providerIDList: expected at most 10000 entries, got 10001')
    expect(work.writes).toBeLessThan(60)
  })

  test('with 5,000 equal IDs is copied, and counts no Node', async () => {
    await aPool()
    const same = Array.from({ length: 5000 }, () => 'dev:///same')
    const work = await writesOf(() =>
      env.patch(DevMachinePool, 'mp', { spec: { providerIDList: same }, status: { ...provisioned, replicas: 5000 } }),
    )
    expect((await pool()).status?.nodeRefs ?? []).toEqual([])
    expect(work.writes).toBeLessThan(60)
  })

  test.each([
    [
      'providerIDList is a string',
      { spec: { providerIDList: 'a' }, status: { ...provisioned, replicas: 1 } },
      'expected a list of strings',
    ],
    ['IDs are numbers', { spec: { providerIDList: [1] }, status: { ...provisioned, replicas: 1 } }, 'got number'],
    [
      'replicas are a string',
      { spec: { providerIDList: ['a'] }, status: { ...provisioned, replicas: '1' } },
      'expected a 32-bit integer',
    ],
    ['provisioned is a string', { status: { initialization: { provisioned: 'yes' } } }, 'expected a boolean'],
  ])('whose %s: a condition names field and type', async (_, body, message) => {
    await aPool()
    const work = await writesOf(() => env.patch(DevMachinePool, 'mp', body))
    expect(JSON.stringify((await pool()).status)).toContain(message)
    expect(work.writes).toBeLessThan(60)
  })
})
