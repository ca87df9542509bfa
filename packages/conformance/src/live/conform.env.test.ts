import { IPAddress } from '@capstan/api'
import { type Client, Namespace, seconds, seededRandom, sleep, type UnknownObject } from '@capstan/kube'
import { localProvider, poolProvider, type ProviderEnv, providerEnv } from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'
import { rules } from '../rules/index.ts'
import { conform, type ConformOptions, type ConformReport } from './conform.ts'
import { formatReport } from './report.ts'
import { findPool, findTarget, NoSuchTarget, type TargetNames } from './target.ts'
import type { Verdict } from './verdict.ts'

const local = {
  InfraCluster: 'LocalCluster',
  InfraMachinePool: 'LocalMachinePool',
  BootstrapConfig: 'LocalBootstrapConfig',
  ControlPlane: 'LocalControlPlane',
}

const example = (group: string, kind: string, spec: object): UnknownObject => ({
  apiVersion: `${group}.capstan.dev/v1alpha1`,
  kind,
  metadata: { name: 'example', uid: '', resourceVersion: '', creationTimestamp: '' },
  spec,
})

/** For three kinds, two examples each: the scenario `templates` sends a dry-run request that changes a template from the first to the second. */
const examples = [
  example('infrastructure', 'LocalMachine', {}),
  example('infrastructure', 'LocalMachine', { simulated: { provisioningDelay: '1s' } }),
  example('infrastructure', 'LocalMachinePool', { machines: true }),
  example('infrastructure', 'LocalMachinePool', { machines: false }),
  example('bootstrap', 'LocalBootstrapConfig', {}),
  example('bootstrap', 'LocalBootstrapConfig', { simulated: { delay: '1s' } }),
]

let env: ProviderEnv
afterEach(() => env.close())

async function run(names: TargetNames, overrides: Partial<ConformOptions> = {}): Promise<ConformReport> {
  const signal = overrides.signal ?? new AbortController().signal
  const running = conform({
    client: env.client,
    clock: env.clock,
    random: seededRandom(3),
    target: await findTarget(env.client, names, examples, signal),
    rules,
    signal,
    limits: { wait: seconds(120), quiet: seconds(10) },
    versions: { kubernetes: 'v1.36.0', upgradeTo: 'v1.36.1' },
    restart: () => env.restart(),
    progress: () => {},
    ...overrides,
  })
  return env.during(running, seconds(7200))
}

/** Returns verdict and id of each rule with one of these verdicts. */
const withVerdict = ({ results }: ConformReport, ...verdicts: Verdict[]): string[] =>
  results.filter(({ verdict }) => verdicts.includes(verdict)).map(({ rule, verdict }) => `${verdict}: ${rule.id}`)

const namespaces = async () =>
  (await env.client.list(Namespace)).items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('conform'))

const notTestable = [
  'not testable here: infra-machine.in-place',
  'not testable here: bootstrap-config.in-place',
  'not testable here: control-plane.in-place',
]

test('the local provider follows every rule that can be tested', async () => {
  env = await providerEnv(localProvider())
  const report = await run(local)
  expect(report.scenarios.map(({ stopped }) => stopped)).toEqual(report.scenarios.map(() => undefined))
  expect(withVerdict(report, 'fail', 'warn')).toEqual([])
  expect(withVerdict(report, 'not testable here')).toEqual(notTestable)
  expect(report.results.every(({ verdict, observations }) => verdict !== 'pass' || observations.length > 0)).toBe(true)
  expect(report.leftovers).toEqual([])
  expect(await namespaces()).toEqual([])
})

test('in contract v1beta1, the local provider follows every rule that can be tested, except newest-contract', async () => {
  env = await providerEnv({ ...localProvider(), contract: 'v1beta1' })
  const report = await run(local)
  expect(report.scenarios.map(({ stopped }) => stopped)).toEqual(report.scenarios.map(() => undefined))
  // The contract itself is deprecated.
  expect(withVerdict(report, 'fail', 'warn')).toEqual(['warn: newest-contract'])
  expect(withVerdict(report, 'not testable here')).toEqual(notTestable)
  const fieldsOf = (id: string) => {
    const { observations } = report.results.find(({ rule }) => rule.id === id)!
    return [...new Set(observations.map(({ field }) => field))].filter((field) => field.startsWith('status.'))
  }
  expect(fieldsOf('infra-cluster.initialization')).toEqual(['status.ready'])
  expect(fieldsOf('bootstrap-config.initialization')).toEqual(['status.ready'])
  expect(fieldsOf('control-plane.initialization')).toEqual(['status.initialized'])
  expect(report.leftovers).toEqual([])
})

test('an infrastructure provider can be tested without a control plane provider: a stub replaces its kind', async () => {
  env = await providerEnv(localProvider())
  const report = await run({ InfraCluster: 'LocalCluster.infrastructure.capstan.dev' })
  expect(report.scenarios.filter(({ stopped }) => stopped !== undefined)).toEqual([])
  expect(withVerdict(report, 'fail', 'warn')).toEqual([])
  expect(report.results.find(({ rule }) => rule.id === 'control-plane.kubeconfig')).toMatchObject({
    verdict: 'not applicable',
    reason: 'no kind of ControlPlane is under test',
  })
})

test('an inactive provider fails, with the object and the field as evidence', async () => {
  env = await providerEnv({ ...localProvider(), start: () => ({ controllers: [], close: async () => {} }) })
  const report = await run(
    { InfraCluster: 'LocalCluster' },
    { rules: rules.filter(({ id }) => id === 'infra-cluster.initialization') },
  )
  expect(report.scenarios).toEqual([
    {
      name: 'life',
      milliseconds: 120_000,
      stopped: 'waited 120 s until Cluster life has status.initialization.infrastructureProvisioned',
    },
  ])
  expect(report.results).toMatchObject([
    {
      verdict: 'fail',
      observations: [
        { holds: true },
        {
          holds: false,
          object: 'LocalCluster conform-life/life',
          field: 'status.initialization.provisioned',
          expected: 'true within 120 s',
          found: 'false',
        },
      ],
    },
  ])
})

test('a provider that starts slowly passes the rules about pausing', async () => {
  const isWrite = (verb: string) => !['get', 'list', 'watch'].includes(verb)
  env = await providerEnv({
    ...localProvider(),
    between: (transport) => ({
      ...transport,
      async send(request, signal) {
        if (isWrite(request.verb) && env.clock.now() < started + seconds(60)) throw new Error('not started yet')
        return transport.send(request, signal)
      },
    }),
  })
  const started = env.clock.now()
  const report = await run(local, { rules: rules.filter(({ id }) => /^(infra-cluster|control-plane)\.pausing$/.test(id)) })
  expect(report.results.map(({ rule, verdict }) => `${verdict}: ${rule.id}`)).toEqual([
    'pass: infra-cluster.pausing',
    'pass: control-plane.pausing',
  ])
})

test('a provider that reports pauses 15 seconds late passes the rules about pausing', async () => {
  const firstAttempts = new Map<string, number>()
  env = await providerEnv({
    ...localProvider(),
    between: (transport) => ({
      ...transport,
      async send(request, signal) {
        const { name, body } = request
        if (name !== undefined && JSON.stringify(body ?? {}).includes('"reason":"Paused"')) {
          const first = firstAttempts.get(name) ?? env.clock.now()
          firstAttempts.set(name, first)
          if (env.clock.now() < first + seconds(15)) throw new Error('the provider is slow')
        }
        return transport.send(request, signal)
      },
    }),
  })
  const report = await run(local, { rules: rules.filter(({ id }) => id.endsWith('.pausing') && !id.startsWith('ipam')) })
  expect(withVerdict(report, 'fail', 'warn', 'not testable here')).toEqual([])
  expect(firstAttempts.size).toBeGreaterThan(4)
})

test('pauses are not tested with a provider that never starts', async () => {
  env = await providerEnv({ ...localProvider(), start: () => ({ controllers: [], close: async () => {} }) })
  const report = await run({ InfraCluster: 'LocalCluster' }, { rules: rules.filter(({ id }) => id === 'infra-cluster.pausing') })
  expect(report.results).toMatchObject([
    {
      verdict: 'not testable here',
      reason: expect.stringContaining('waited 120 s until the provider writes LocalCluster unpaused'),
    },
  ])
})

test('an interrupted run deletes its objects', async () => {
  env = await providerEnv(localProvider())
  const interrupted = new AbortController()
  const lines: string[] = []
  const progress = (line: string) => {
    lines.push(line)
    if (line.includes('worker Machines have infrastructure')) interrupted.abort(new Error('interrupted'))
  }
  await expect(run(local, { signal: interrupted.signal, progress })).rejects.toThrow('interrupted')
  const announced = lines.find((line) => line.startsWith('interrupted: '))
  expect(announced).toMatch(/^interrupted: deleting the objects of namespaces conform-\S+/)
  expect(announced).toContain('conform-life')
  await env.advance(seconds(60))
  expect(await namespaces()).toEqual([])
})

const poolExample: UnknownObject = {
  ...example('ipam', 'DevPool', { addresses: Array.from({ length: 20 }, (_, i) => `10.0.0.${i + 2}`), prefix: 24 }),
  apiVersion: 'ipam.example.com/v1alpha1',
}

test('an IPAM provider can be tested without other kinds, and follows every rule about IPAM that can be tested', async () => {
  env = await providerEnv(poolProvider())
  const pool = await findPool(env.client, 'DevPool', [poolExample], new AbortController().signal)
  const report = await run({}, { pool })
  expect(report.target).toEqual([{ contract: 'IPAM', kind: 'DevPool.v1alpha1.ipam.example.com' }])
  expect(formatReport(report, 'text', '1').split('\n')[0]).toBe('IPAM: DevPool.v1alpha1.ipam.example.com')
  expect(report.scenarios).toMatchObject([{ name: 'addresses', stopped: undefined }])
  expect(withVerdict(report, 'fail', 'warn')).toEqual([])
  const verdicts = new Map(report.results.map(({ rule, verdict }) => [rule.id, verdict]))
  const tested = rules.filter(({ id, live }) => id.startsWith('ipam.') && live).map(({ id }) => id)
  expect(tested).toHaveLength(11)
  expect(tested.filter((id) => verdicts.get(id) !== 'pass')).toEqual([])
  expect(report.leftovers).toEqual([])
  expect(await namespaces()).toEqual([])
})

test('a watch that delivers changes of IPAddresses late causes no failure', async () => {
  env = await providerEnv(poolProvider())
  const pool = await findPool(env.client, 'DevPool', [poolExample], new AbortController().signal)
  const client: Client = {
    ...env.client,
    async watch(kind, options) {
      const events = await env.client.watch(kind, options)
      if (kind.kind !== IPAddress.kind) return events
      return (async function* () {
        for await (const event of events) {
          await sleep(env.clock, seconds(2))
          yield event
        }
      })()
    },
  }
  expect(withVerdict(await run({}, { pool, client }), 'fail', 'warn')).toEqual([])
})

test('an IPAM provider can be tested together with an infrastructure provider', async () => {
  const [infrastructure, addresses] = [localProvider(), poolProvider()]
  env = await providerEnv({
    kinds: [...infrastructure.kinds, ...addresses.kinds],
    start(context) {
      const running = infrastructure.start(context)
      return { ...running, controllers: [...running.controllers, ...addresses.start(context).controllers] }
    },
  })
  const pool = await findPool(env.client, 'DevPool', [poolExample], new AbortController().signal)
  const report = await run({ InfraCluster: 'LocalCluster' }, { pool })
  expect(report.scenarios.map(({ stopped }) => stopped)).toEqual(report.scenarios.map(() => undefined))
  expect(report.scenarios.map(({ name }) => name)).toContain('addresses')
  expect(withVerdict(report, 'fail', 'warn')).toEqual([])
  expect(report.leftovers).toEqual([])
})

test('an inactive IPAM provider fails, and the objects of the run are deleted', async () => {
  env = await providerEnv({ ...poolProvider(), start: () => ({ controllers: [], close: async () => {} }) })
  const pool = await findPool(env.client, 'DevPool', [poolExample], new AbortController().signal)
  const report = await run({}, { pool })
  expect(report.scenarios).toMatchObject([
    { stopped: 'waited 120 s until claims by-name, by-label, other have status.addressRef' },
  ])
  expect(withVerdict(report, 'fail', 'warn')).toEqual(['fail: ipam.claims', 'fail: ipam.address-ref'])
  expect(report.results.find(({ rule }) => rule.id === 'ipam.claims')!.observations[0]).toMatchObject({
    object: 'IPAddressClaim conform-addresses/by-name',
    found: 'nothing',
    holds: false,
  })
  expect(report.results.find(({ rule }) => rule.id === 'ipam.pausing')).toMatchObject({ verdict: 'not testable here' })
  expect(await namespaces()).toEqual([])
})

test('a pool without an example, or with an example in a version that is not served, is an error', async () => {
  env = await providerEnv(poolProvider())
  const find = (...examples: UnknownObject[]) => findPool(env.client, 'DevPool', examples, new AbortController().signal)
  await expect(find()).rejects.toThrow('IPAM: no example of kind DevPool')
  await expect(find({ ...poolExample, apiVersion: 'ipam.example.com/v9' })).rejects.toMatchObject({
    message: 'IPAM: the API server does not serve version v9 of kind DevPool',
    hint: 'Use a served version in the example: v1alpha1.',
  })
})

test('the error for a kind that does not exist names the contract', async () => {
  env = await providerEnv(localProvider())
  const { signal } = new AbortController()
  const find = (names: TargetNames) => findTarget(env.client, names, [], signal)
  await expect(find({ InfraCluster: 'NoCluster' })).rejects.toThrow(
    new NoSuchTarget('InfraCluster: the API server has no CustomResourceDefinition of kind NoCluster'),
  )
})

test('only an InfraCluster whose kind ends with Cluster has an InfraMachine by convention', async () => {
  env = await providerEnv(localProvider())
  const { signal } = new AbortController()
  expect((await findTarget(env.client, { InfraCluster: 'LocalCluster' }, [], signal)).InfraMachine?.kind.kind).toBe(
    'LocalMachine',
  )
  expect((await findTarget(env.client, { InfraCluster: 'LocalMachine' }, [], signal)).InfraMachine).toBeUndefined()
})
