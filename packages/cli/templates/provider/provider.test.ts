import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { conform, findTarget, formatReport, rules } from '@capstan/conformance'
import { seconds, seededRandom, type UnknownObject } from '@capstan/kube'
import { providerEnv } from '@capstan/testing'
import { parseAllDocuments } from 'yaml'
import { memoryCloud } from './cloud.ts'
import { controllers, kinds } from './provider.ts'

// The same scenarios as `npx @capstan/cli conform` with --restart, with core in this process and on a virtual clock.
test('the provider satisfies the rules of the contracts', async () => {
  const cloud = memoryCloud()
  const env = await providerEnv({ kinds, start: () => ({ controllers: controllers(cloud), close: async () => {} }) })
  const { signal } = new AbortController()
  const examples = parseAllDocuments(readFileSync(new URL('examples.yaml', import.meta.url), 'utf8'))
  const target = await findTarget(
    env.client,
    {
      InfraCluster: 'SampleCluster',
      InfraMachinePool: 'SampleMachinePool', // if --kinds includes machinepool
      ControlPlane: 'SampleControlPlane', // if --kinds includes controlplane
    },
    examples.map((document) => document.toJS() as UnknownObject),
    signal,
  )
  const report = await env.during(
    conform({
      client: env.client,
      clock: env.clock,
      random: seededRandom(1),
      target,
      rules,
      signal,
      limits: { wait: seconds(120), quiet: seconds(10) },
      versions: { kubernetes: 'v1.36.0', upgradeTo: 'v1.36.1' },
      restart: () => env.restart(),
      progress: () => {},
    }),
    seconds(7200),
  )
  await env.close()
  const broken = report.results.filter(({ verdict }) => verdict === 'fail' || verdict === 'warn')
  assert.equal(broken.length, 0, formatReport(report, 'text', ''))
  const stopped = report.scenarios.filter((scenario) => scenario.stopped !== undefined)
  assert.deepEqual(stopped, [])
  assert.deepEqual([...cloud.resources], [], 'resources that no deletion has removed')
})
