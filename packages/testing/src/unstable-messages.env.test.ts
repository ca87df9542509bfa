/** Tests extensions with a different message in each call: conditions are updated, and retries are not more frequent. */
import {
  BeforeClusterCreate,
  Cluster,
  ClusterClass,
  createCatalog,
  DiscoverVariables,
  type ExtensionConfig,
  type Hook,
  hookCatalog,
} from '@capstan/api'
import {
  type Answer,
  createExtensionClient,
  defineExtension,
  extensionServer,
  fail,
  holdFor,
  inProcess,
  on,
} from '@capstan/extension'
import { getCondition, type LogFields, type Logger, minutes, seconds, silent, VirtualClock } from '@capstan/kube'
import { afterEach, expect, test } from 'vitest'
import { createFrom } from './manifests.ts'
import { type ManagementEnv, managementEnv } from './management-env.ts'

let env: ManagementEnv | undefined
afterEach(() => env?.close())

const demo = new URL('../../lab/demo/', import.meta.url)
const key = { namespace: 'default', name: 'demo' }

/** Starts a management cluster with an extension that has one handler, and creates the ClusterClass and the Cluster of the demo. */
async function managementWith(hook: Hook, answer: (nth: number) => Answer) {
  const clock = new VirtualClock()
  const warnings: [string, LogFields][] = []
  const log: Logger = { ...silent, warn: (message, fields = {}) => void warnings.push([message, fields]), child: () => log }
  const calls: number[] = []
  const handle = () => {
    calls.push(clock.now())
    return answer(calls.length)
  }
  const extension = defineExtension({ name: 'x', handlers: [on(hook, { name: 'changing' }, handle as never)] })
  const runtime = createExtensionClient({
    transport: inProcess(extensionServer(extension, { clock })),
    catalog: createCatalog(hookCatalog),
    clock,
    log,
    namespaceLabels: async () => ({}),
  })
  const config = {
    metadata: { name: 'x' },
    spec: { clientConfig: { url: 'https://x' }, namespaceSelector: {} },
  } as ExtensionConfig
  runtime.warmUp([{ ...config, status: { handlers: await runtime.discover(config) } }])
  env = await managementEnv({ runtime, clock })
  await createFrom(env.client, new URL('class.yaml', demo))
  await env.settle()
  await createFrom(env.client, new URL('cluster.yaml', demo))
  const message = async () => getCondition(await env!.client.get(Cluster, key), 'TopologyReconciled')?.message
  return { ...env, calls, warnings, message }
}

test('a handler that fails with a different message each time causes a warning, and is retried with the same backoff as one that fails with a constant message', async () => {
  const run = async (answer: (nth: number) => Answer) => {
    const management = await managementWith(BeforeClusterCreate, answer)
    await management.advance(minutes(2))
    const result = { calls: management.calls.length, message: await management.message(), warnings: management.warnings }
    await env!.close()
    env = undefined
    return result
  }
  const constant = await run(() => fail('no quota'))
  const changing = await run((nth) => fail(`no quota at attempt ${nth}`))
  expect(changing.calls).toBe(constant.calls)
  expect(changing.calls).toBeLessThan(20)
  expect(changing.message).toMatch(new RegExp(`got failure response with message: no quota at attempt ${changing.calls}$`))
  expect(constant.warnings).toEqual([])
  expect(changing.warnings).toEqual([
    [
      'The message of a handler differed at each of its last calls, so conditions that show it change with every call',
      { hook: 'BeforeClusterCreate', handler: 'changing.x', Cluster: 'default/demo', calls: 5 },
    ],
  ])
})

test('a handler that blocks with a different message each time is called again only after its retry time, and causes one warning', async () => {
  const management = await managementWith(BeforeClusterCreate, (nth) => holdFor(10, `place ${nth} in the queue`))
  await management.advance(seconds(65))
  const start = management.calls[0]!
  expect(management.calls.map((at) => at - start)).toEqual([0, 10, 20, 30, 40, 50, 60].map(seconds))
  expect(await management.message()).toBe(
    'Following hooks are blocking Cluster topology creation: BeforeClusterCreate: place 7 in the queue',
  )
  expect(management.warnings).toHaveLength(1)
})

test('a handler of DiscoverVariables that fails with a different message each time is retried with backoff', async () => {
  const management = await managementWith(DiscoverVariables, (nth) => fail(`broken for the ${nth}th time`))
  const external = { discoverVariablesExtension: 'changing.x', generatePatchesExtension: 'changing.x' }
  const operations = [{ op: 'add' as const, path: '/spec/patches', value: [{ name: 'changing', external }] }]
  await management.client.patch(ClusterClass, key, { type: 'json', operations })
  await management.advance(minutes(2))
  expect(management.calls.length).toBeGreaterThan(5)
  expect(management.calls.length).toBeLessThan(20)
})
