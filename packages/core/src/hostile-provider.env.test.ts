/**
 * Providers that break the contract, report very large values, or recreate their objects again and again. Core does not copy invalid
 * values, and sends few writes. Most violations lead to a condition.
 */
import { Cluster, Machine, MachinePool } from '@capstan/api'
import { type ApiRequest, type DeclaredKind, minutes } from '@capstan/kube'
import {
  aMachine,
  aMachinePool,
  type CoreEnv,
  collectWrites,
  conditionText,
  coreEnv,
  DevCluster,
  DevConfig,
  DevControlPlane,
  DevMachine,
  DevMachinePool,
  testContract,
} from '@capstan/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

let env: CoreEnv
/** Write requests of core. */
const requests: ApiRequest[] = []

beforeEach(async () => {
  env = await coreEnv({ between: collectWrites(requests) })
})
afterEach(() => env.close())

/**
 * Counts the writes of core during `act` and in the ten minutes after it, and the total length of their bodies as JSON, which is ASCII in
 * these tests.
 */
async function writesOf(act: () => Promise<void>): Promise<{ writes: number; bytes: number }> {
  requests.length = 0
  await act()
  await env.advance(minutes(10))
  const bodies = requests.map(({ body = '' }) => JSON.stringify(body))
  return { writes: requests.length, bytes: bodies.join('').length }
}

/** Creates a MachinePool with bootstrap data, whose infrastructure machine pool has no status yet. */
async function createPool(): Promise<void> {
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

/** Returns 900 KB of fields that no contract has. */
const junk = () => Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`junk${i}`, 'x'.repeat(1000)]))

const repeated = <T>(count: number, entry: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => entry(i))
const ref = (name: string) => ({ apiGroup: 'infra.example.com', kind: 'DevMachine', name })

/** Deletes and recreates the object `times` times, and then deletes it once more. */
async function deleteAndRecreate(kind: DeclaredKind, name: string, times: number): Promise<void> {
  const { spec = {} } = (await env.get(kind, name)) as { spec?: object }
  for (let i = 0; i < times; i++) {
    await env.client.delete(kind, { namespace: 'default', name })
    await env.settle()
    await env.create(kind, name, { spec })
    await env.settle()
  }
  await env.client.delete(kind, { namespace: 'default', name })
}

describe('an infrastructure machine', () => {
  const machine = () => env.get(Machine, 'm')

  test('with a status of 900 KB is read, and only fields of the contract are copied', async () => {
    await env.provisionCluster()
    await env.provisionMachine('m')
    const work = await writesOf(() => env.patch(DevMachine, 'm', { status: { ...provisioned, ...junk() } }))
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
        infrastructureRef: ref('m'),
      },
    })
    const work = await writesOf(() => env.patch(DevMachine, 'm', body))
    expect(work.writes).toBeLessThan(60)
    expect(conditionText(await machine(), 'InfrastructureReady')).toMatch(/^False NotReady: /)
    await env.provisionMachine('other')
    expect(conditionText(await env.get(Machine, 'other'), 'InfrastructureReady')).toMatch(/^True/)
  })

  /** Creates a Machine with bootstrap data, whose infrastructure machine has a provider ID. */
  async function createBootstrappedMachine(): Promise<void> {
    await env.provisionCluster()
    await env.create(DevConfig, 'm')
    await env.create(DevMachine, 'm', { spec: { providerID: 'dev:///m' } })
    await env.create(Machine, 'm', {
      spec: { ...aMachine().spec, bootstrap: { dataSecretName: 'data' }, infrastructureRef: ref('m') },
    })
  }

  const address = (text: string, type = 'InternalIP') => ({ type, address: text })
  const manyAddresses = repeated(10_000, (i) => address(`10.0.0.${i}`))

  test.each([
    ['10,000 addresses', manyAddresses, ': expected at most 256 entries, got 10000'],
    ['an address of an unknown type', [address('a'), address('b', 'Pigeon')], '[1].type: expected one of Hostname, '],
    ['a long address', [address('x'.repeat(257))], '[0].address: expected a string of 1 to 256 characters, got 257 characters'],
    [
      'an address that is a number',
      [{ type: 'Hostname', address: 7 }],
      '[0].address: expected a string of 1 to 256 characters, got number',
    ],
    ['addresses that are a number', 7, ': expected a list, got number'],
  ])(
    'with %s does not count as provisioned until its addresses are valid; a condition has the reason',
    async (_, addresses, message) => {
      await createBootstrappedMachine()
      const work = await writesOf(() => env.patch(DevMachine, 'm', { status: { ...provisioned, addresses } }))
      expect(work.writes).toBeLessThan(10)
      expect(conditionText(await machine(), 'InfrastructureReady')).toContain(
        `False NotReady: DevMachine default/m breaks the contract: status.addresses${message}`,
      )
      expect((await machine()).status?.initialization?.infrastructureProvisioned).toBeUndefined()
      await env.patch(DevMachine, 'm', { status: { addresses: [address('10.0.0.1')] } })
      expect(conditionText(await machine(), 'InfrastructureReady')).toBe('True Ready')
      expect((await machine()).status?.addresses).toEqual([address('10.0.0.1')])
      await env.patch(DevMachine, 'm', { status: { addresses: [] } })
      expect((await machine()).status).not.toHaveProperty('addresses')
    },
  )

  test.each([
    ['provider ID', { spec: { providerID: 'x'.repeat(513) } }, 'spec.providerID: expected at most 512 characters, got 513'],
    [
      'failure domain',
      { status: { failureDomain: 'x'.repeat(257) } },
      'status.failureDomain: expected at most 256 characters, got 257',
    ],
    [
      'failure domain in its spec',
      { spec: { failureDomain: 'x'.repeat(257) } },
      'spec.failureDomain: expected at most 256 characters, got 257',
    ],
  ])(
    'with a long %s does not count as provisioned until the value is valid; a condition has the reason',
    async (_, reported, message) => {
      await createBootstrappedMachine()
      const status = { ...provisioned, ...('status' in reported ? reported.status : {}) }
      const work = await writesOf(() => env.patch(DevMachine, 'm', { ...reported, status }))
      expect(work.writes).toBeLessThan(10)
      expect(conditionText(await machine(), 'InfrastructureReady')).toBe(
        `False NotReady: DevMachine default/m breaks the contract: ${message}`,
      )
      expect((await machine()).status?.initialization?.infrastructureProvisioned).toBeUndefined()
      await env.patch(DevMachine, 'm', { spec: { providerID: 'dev:///m', failureDomain: null }, status: { failureDomain: 'a' } })
      expect(conditionText(await machine(), 'InfrastructureReady')).toBe('True Ready')
      expect(await machine()).toMatchObject({ spec: { providerID: 'dev:///m' }, status: { failureDomain: 'a' } })
    },
  )

  test('that later reports 10,000 addresses: its Machine keeps the earlier addresses, and reports other changes', async () => {
    await env.provisionCluster()
    await env.provisionMachine('m')
    await env.patch(DevMachine, 'm', { status: { addresses: [address('10.0.0.1')] } })
    const work = await writesOf(async () => {
      await env.patch(DevMachine, 'm', { status: { addresses: manyAddresses } })
      expect(conditionText(await machine(), 'InfrastructureReady')).toBe(
        'True Ready: DevMachine default/m breaks the contract: status.addresses: expected at most 256 entries, got 10000',
      )
      expect(conditionText(await machine(), 'Available')).toBe('True Available')
      const Ready = {
        type: 'Ready',
        status: 'False',
        reason: 'Broken',
        message: 'no',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      }
      await env.patch(DevMachine, 'm', { status: { conditions: [Ready] } })
    })
    expect(work.writes).toBeLessThan(10)
    expect((await machine()).status?.addresses).toEqual([address('10.0.0.1')])
    expect(conditionText(await machine(), 'InfrastructureReady')).toMatch(
      /^False Broken: DevMachine default\/m breaks the contract/,
    )
  })

  test('that is repeatedly deleted and recreated leads to a condition, and on average to fewer than ten writes each time', async () => {
    await env.provisionCluster()
    await env.provisionMachine('m')
    const work = await writesOf(() => deleteAndRecreate(DevMachine, 'm', 20))
    expect(conditionText(await machine(), 'InfrastructureReady')).toMatch(/^False ObjectDeleted: /)
    expect(work.writes).toBeLessThan(20 * 10)
  })

  test('with the provider ID of another infrastructure machine: both Machines refer to the same Node, after few writes', async () => {
    await env.provisionCluster()
    await env.provisionMachine('m')
    const work = await writesOf(async () => {
      await env.create(DevMachine, 'same', { spec: { providerID: 'dev:///m' } })
      await env.create(Machine, 'same', {
        spec: {
          clusterName: 'demo',
          bootstrap: { dataSecretName: 'data' },
          infrastructureRef: ref('same'),
        },
      })
      await env.patch(DevMachine, 'same', { status: provisioned })
    })
    const same = await env.get(Machine, 'same')
    expect(same.status?.nodeRef).toEqual({ name: 'node-m' })
    expect((await machine()).status?.nodeRef).toEqual({ name: 'node-m' })
    expect(work.writes).toBeLessThan(60)
  })
})

describe('a bootstrap config', () => {
  const created = (dataSecretName: unknown) => ({ status: { initialization: { dataSecretCreated: true }, dataSecretName } })

  test.each([
    ['a long name', 'x'.repeat(254), 'expected at most 253 characters, got 254'],
    ['a number as the name', 7, 'expected a string, got number'],
  ])('with %s of its Secret leads to a condition of the Machine, until the name is valid', async (_, name, message) => {
    await env.provisionCluster()
    await env.create(DevMachine, 'm1')
    await env.create(DevConfig, 'm1')
    await env.create(Machine, 'm1', { spec: aMachine().spec })
    const work = await writesOf(() => env.patch(DevConfig, 'm1', created(name)))
    expect(work.writes).toBeLessThan(10)
    const condition = async () => conditionText(await env.get(Machine, 'm1'), 'BootstrapConfigReady')
    expect(await condition()).toBe(`False NotReady: DevConfig default/m1 breaks the contract: status.dataSecretName: ${message}`)
    await env.patch(DevConfig, 'm1', created('data'))
    expect(await condition()).toBe('True Ready')
    expect((await env.get(Machine, 'm1')).spec.bootstrap.dataSecretName).toBe('data')
  })

  // Upstream: contract.Bootstrap().DataSecretCreated, which returns an error for a string.
  test('whose dataSecretCreated is a string is treated as if it had not created the Secret', async () => {
    await env.provisionCluster()
    for (const name of ['m1', 'mp']) await env.create(DevConfig, name)
    await env.create(DevMachine, 'm1')
    await env.create(DevMachinePool, 'mp')
    await env.create(Machine, 'm1', { spec: aMachine().spec })
    await env.create(MachinePool, 'mp', { spec: aMachinePool().spec })
    const invalid = { status: { initialization: { dataSecretCreated: 'false' }, dataSecretName: 'data' } }
    for (const name of ['m1', 'mp']) await env.patch(DevConfig, name, invalid)
    const machine = await env.get(Machine, 'm1')
    expect([machine.spec.bootstrap.dataSecretName, conditionText(machine, 'BootstrapConfigReady')]).toEqual([
      undefined,
      'False NotReady: DevConfig status.initialization.dataSecretCreated is false',
    ])
    const { spec, status } = await pool()
    expect(spec.template.spec.bootstrap.dataSecretName).toBeUndefined()
    expect(status?.deprecated?.v1beta1?.conditions).not.toContainEqual(
      expect.objectContaining({ type: 'BootstrapReady', status: 'True' }),
    )
  })

  test('with a long name of its Secret leads to a condition of the MachinePool, until the name is valid', async () => {
    await env.provisionCluster()
    await env.create(DevConfig, 'mp')
    await env.create(DevMachinePool, 'mp')
    await env.create(MachinePool, 'mp', { spec: aMachinePool().spec })
    const work = await writesOf(() => env.patch(DevConfig, 'mp', created('x'.repeat(254))))
    expect(work.writes).toBeLessThan(10)
    expect(JSON.stringify((await pool()).status)).toContain('status.dataSecretName: expected at most 253 characters, got 254')
    await env.patch(DevConfig, 'mp', created('data'))
    expect((await pool()).spec.template.spec.bootstrap.dataSecretName).toBe('data')
  })
})

describe.each([
  ['an infrastructure cluster', DevCluster, 'InfrastructureReady', provisioned],
  ['a control plane', DevControlPlane, 'ControlPlaneAvailable', { initialization: { controlPlaneInitialized: true } }],
] as const)('%s', (_, kind, type, initialized) => {
  const cluster = () => env.get(Cluster, 'demo')

  // Upstream: reconcileExternal returns an error, as if it could not read the object.
  test.each([{ failureReason: 5 }, { failureMessage: ['x'] }])(
    'with the failure %o is treated as if it could not be read, and is not deleted with the Cluster',
    async (failure) => {
      await env.provisionCluster()
      await env.patch(kind, 'demo', { status: failure })
      expect(conditionText(await cluster(), type)).toBe('Unknown InternalError: Please check controller logs for errors')
      await env.client.delete(Cluster, { namespace: 'default', name: 'demo' })
      await env.advance(minutes(10))
      expect(conditionText(await cluster(), 'Deleting')).toBe('True InternalError: Please check controller logs for errors')
      expect((await env.get(kind, 'demo')).metadata.deletionTimestamp).toBeUndefined()
    },
  )

  test('with a status of 900 KB is read, and only fields of the contract are copied', async () => {
    await env.provisionCluster()
    const work = await writesOf(() => env.patch(kind, 'demo', { status: { ...initialized, ...junk() } }))
    expect(conditionText(await cluster(), type)).toMatch(/^True/)
    expect(JSON.stringify(await cluster()).length).toBeLessThan(20_000)
    expect(work.writes).toBeLessThan(20)
  })

  test('with a message of 900 KB in its condition leads to a condition of bounded length', async () => {
    await env.provisionCluster()
    const fields = { status: 'False', reason: 'Broken', message: 'x'.repeat(900_000), lastTransitionTime: '2026-01-01T00:00:00Z' }
    const conditions = [{ type: kind === DevCluster ? 'Ready' : 'Available', ...fields }]
    const work = await writesOf(() => env.patch(kind, 'demo', { status: { ...initialized, conditions } }))
    const text = conditionText(await cluster(), type) ?? ''
    expect(text).toMatch(/^False Broken: x/)
    expect(text.length).toBeLessThan(40_000)
    expect(work.writes).toBeLessThan(60)
  })

  test('that is repeatedly deleted and recreated leads to a condition, and on average to fewer than ten writes each time', async () => {
    await env.provisionCluster()
    const work = await writesOf(() => deleteAndRecreate(kind, 'demo', 20))
    expect(conditionText(await cluster(), type)).toMatch(/^False ObjectDeleted: /)
    expect(work.writes).toBeLessThan(20 * 10)
  })
})

/** Creates a Cluster whose infrastructure cluster and control plane have no status yet. */
async function createCluster(): Promise<void> {
  await env.create(Cluster, 'demo', {
    spec: {
      infrastructureRef: { apiGroup: 'infra.example.com', kind: 'DevCluster', name: 'demo' },
      controlPlaneRef: { apiGroup: 'controlplane.example.com', kind: 'DevControlPlane', name: 'demo' },
    },
  })
  await env.create(DevCluster, 'demo')
  await env.create(DevControlPlane, 'demo')
  await env.settle()
}
const initialized = { initialization: { controlPlaneInitialized: true } }
const InternalError = 'Unknown InternalError: Please check controller logs for errors'

// Upstream: an invalid field is an error of the reconcile, so the Cluster does not record that its infrastructure is provisioned. The
// message of the condition has the recorded value: false, even if the object reports true.
test.each([
  ['whose initialization is a list', { status: { initialization: ['provisioned'] } }],
  ['whose provisioned is a string', { status: { initialization: { provisioned: 'true' } } }],
  ['whose endpoint is a string', { spec: { controlPlaneEndpoint: 'a:1' }, status: provisioned }],
  ['whose port is a string', { spec: { controlPlaneEndpoint: { host: 'a', port: '1' } }, status: provisioned }],
  ['with a long host', { spec: { controlPlaneEndpoint: { host: 'x'.repeat(513), port: 1 } }, status: provisioned }],
  ['with a port of 70000', { spec: { controlPlaneEndpoint: { host: 'a', port: 70_000 } }, status: provisioned }],
  ['whose failure domains are a number', { status: { ...provisioned, failureDomains: 7 } }],
  ['with a failure domain of a long name', { status: { ...provisioned, failureDomains: [{ name: 'x'.repeat(257) }] } }],
  ['with 10,000 failure domains', { status: { ...provisioned, failureDomains: repeated(10_000, (i) => ({ name: `d${i}` })) } }],
])('an infrastructure cluster %s does not count as provisioned, and leads to few writes', async (_, body) => {
  await createCluster()
  const work = await writesOf(() => env.patch(DevCluster, 'demo', body))
  const cluster = await env.get(Cluster, 'demo')
  expect(cluster.status?.initialization?.infrastructureProvisioned).toBeUndefined()
  expect(conditionText(cluster, 'InfrastructureReady')).toBe(
    'False NotReady: DevCluster status.initialization.provisioned is false',
  )
  expect(work.writes).toBeLessThan(10)
})

test.each([
  [
    'whose initialization is a list',
    { status: { initialization: ['x'] } },
    // Contract v1beta1 does not use status.initialization, so the list is no error there.
    testContract() === 'v1beta2' ? InternalError : 'False NotInitialized: Control plane not yet initialized',
  ],
  [
    'whose controlPlaneInitialized is a string',
    { status: { initialization: { controlPlaneInitialized: 'true' } } },
    InternalError,
  ],
  ['whose endpoint is a string', { spec: { controlPlaneEndpoint: 'a:1' }, status: initialized }, 'True Initialized'],
  [
    'with a long host',
    { spec: { controlPlaneEndpoint: { host: 'x'.repeat(513), port: 1 } }, status: initialized },
    'True Initialized',
  ],
])('a control plane %s does not count as available, and leads to few writes', async (_, body, expected) => {
  await createCluster()
  const work = await writesOf(() => env.patch(DevControlPlane, 'demo', body))
  const cluster = await env.get(Cluster, 'demo')
  expect(cluster.status?.initialization?.controlPlaneInitialized).toBeUndefined()
  expect(conditionText(cluster, 'ControlPlaneAvailable')).toBe(
    'False NotAvailable: DevControlPlane status.initialization.controlPlaneInitialized is false',
  )
  expect(conditionText(cluster, 'ControlPlaneInitialized')).toBe(expected)
  expect(work.writes).toBeLessThan(10)
})

// Upstream: setControlPlaneReplicas ignores values that it cannot read.
test.each([
  ['replicas that are a string', { replicas: 'three' }],
  ['10,000 versions', { versions: repeated(10_000, (i) => ({ version: `v1.34.${i}`, replicas: 1 })) }],
  ['versions that are a string', { versions: 'v1.34.0' }],
])('a control plane with %s counts as available, but the invalid field is not copied', async (_, status) => {
  await createCluster()
  const work = await writesOf(() => env.patch(DevControlPlane, 'demo', { status: { ...initialized, ...status } }))
  const cluster = await env.get(Cluster, 'demo')
  expect(conditionText(cluster, 'ControlPlaneAvailable')).toBe('True Available')
  expect(cluster.status?.controlPlane).toEqual({})
  expect(work.writes).toBeLessThan(10)
})

test('versions of a control plane are copied even if a version is listed twice', async () => {
  await createCluster()
  const versions = repeated(2, () => ({ version: 'v1.34.0', replicas: 1 }))
  await env.patch(DevControlPlane, 'demo', { status: { ...initialized, versions } })
  expect((await env.get(Cluster, 'demo')).status?.controlPlane).toEqual({ versions })
})

test('a running Cluster keeps its failure domains and reports changes while its infrastructure has too many failure domains', async () => {
  await env.provisionCluster()
  await env.patch(DevCluster, 'demo', { status: { failureDomains: [{ name: 'a' }] } })
  const work = await writesOf(async () => {
    await env.patch(DevCluster, 'demo', { status: { failureDomains: repeated(101, (i) => ({ name: `d${i}` })) } })
    const Ready = { type: 'Ready', status: 'False', reason: 'Broken', message: 'no', lastTransitionTime: '2026-01-01T00:00:00Z' }
    await env.patch(DevCluster, 'demo', { status: { conditions: [Ready] } })
  })
  const cluster = await env.get(Cluster, 'demo')
  expect(cluster.status?.failureDomains).toEqual([{ name: 'a', controlPlane: false }])
  expect(conditionText(cluster, 'InfrastructureReady')).toBe('False Broken: no')
  expect(work.writes).toBeLessThan(10)
})

describe('an infrastructure machine pool', () => {
  test('with a status of 900 KB is read, and only fields of the contract are copied', async () => {
    await createPool()
    const work = await writesOf(() => env.patch(DevMachinePool, 'mp', { status: { ...provisioned, replicas: 0, ...junk() } }))
    expect((await pool()).status?.initialization?.infrastructureProvisioned).toBe(true)
    expect(JSON.stringify(await pool()).length).toBeLessThan(20_000)
    expect(work.writes).toBeLessThan(20)
  })

  test('that is repeatedly deleted and recreated leads to a failure message, and on average to fewer than ten writes each time', async () => {
    await createPool()
    await env.patch(DevMachinePool, 'mp', { status: { ...provisioned, replicas: 0 } })
    const work = await writesOf(() => deleteAndRecreate(DevMachinePool, 'mp', 20))
    expect((await pool()).status?.deprecated?.v1beta1?.failureMessage).toBe(
      'MachinePool infrastructure resource DevMachinePool default/mp has been deleted after being ready',
    )
    expect(work.writes).toBeLessThan(20 * 10)
  })

  const idsOf = (count: number) => Array.from({ length: count }, (_, i) => `dev:///pool-${i}`)

  test('with 10,000 provider IDs: all are copied, in few writes', async () => {
    await createPool()
    const ids = idsOf(10_000)
    const work = await writesOf(() =>
      env.patch(DevMachinePool, 'mp', { spec: { providerIDList: ids }, status: { ...provisioned, replicas: 10_000 } }),
    )
    expect((await pool()).spec.providerIDList).toHaveLength(10_000)
    expect(work.writes).toBeLessThan(30)
    expect(work.bytes).toBeLessThan(3_000_000)
  })

  test('with more than 10,000 provider IDs: none is copied, and a condition has the reason', async () => {
    await createPool()
    const work = await writesOf(() =>
      env.patch(DevMachinePool, 'mp', { spec: { providerIDList: idsOf(10_001) }, status: { ...provisioned, replicas: 10_001 } }),
    )
    expect((await pool()).spec.providerIDList).toBeUndefined()
    expect(JSON.stringify((await pool()).status)).toContain('spec.providerIDList: expected at most 10000 entries, got 10001')
    expect(work.writes).toBeLessThan(60)
  })

  test('with 5,000 equal provider IDs: its MachinePool refers to no Node, after few writes', async () => {
    await createPool()
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
  ])('whose %s leads to a condition with the reason', async (_, body, message) => {
    await createPool()
    const work = await writesOf(() => env.patch(DevMachinePool, 'mp', body))
    expect(JSON.stringify((await pool()).status)).toContain(message)
    expect(work.writes).toBeLessThan(60)
  })
})
