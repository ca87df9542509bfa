import { readFileSync } from 'node:fs'
import type { ReleasedCatalog } from '@capstan/api'
import { catalogProblems, createCatalog, ExtensionConfig, hookCatalog, hooksOpenApi, releasedCatalog } from '@capstan/api'
import { createExtensionConfigController } from '@capstan/core'
import { createExtensionClient, extensionServer, type FetchHandler, inProcess, NoAnswer } from '@capstan/extension'
import { getCondition, minutes, Namespace, seconds, silent, VirtualClock } from '@capstan/kube'
import { managementEnv, testEnv } from '@capstan/testing'
import { afterEach, expect, it } from 'vitest'
import { hostExtension } from './extension.ts'
import { hostHooks } from './hooks.ts'
import { hostHooks as nextHooks } from './hooks-v0.4.0.ts'
import { Host } from './host.ts'
import { createHostController } from './host-controller.ts'

const catalog = createCatalog([...hookCatalog, ...hostHooks])

const releases = ['v0.1.0', 'v0.2.0', 'v0.3.0'].map(
  (release) => JSON.parse(readFileSync(new URL(`${release}.json`, import.meta.url), 'utf8')) as ReleasedCatalog,
)

it('the provider keeps the hooks of its earlier releases', () => {
  const now = releasedCatalog('v0.3.1', '2026-11-21', hostHooks)
  expect(catalogProblems(createCatalog(hostHooks), now, releases)).toEqual([])
})

it('the provider may remove a deprecated version of the hook after its support window, not before', () => {
  const removal = (date: string) =>
    catalogProblems(createCatalog(nextHooks), releasedCatalog('v0.4.0', date, nextHooks), releases)
  expect(removal('2026-11-21')).toEqual([])
  expect(removal('2026-10-31')).toEqual([
    'Rule #4: hooks.provider.example.com/v1beta1, Hook=BeforeHostProvision is gone before 2026-11-01; it was deprecated in v0.2.0 on 2026-05-01',
  ])
})

it("the OpenAPI document of a catalog with the hooks of core and the provider describes both versions of the provider's hook", () => {
  const paths = Object.keys(hooksOpenApi(catalog.hooks, 'v0.1.0').paths as object)
  expect(paths.filter((path) => path.includes('example.com'))).toEqual([
    '/hooks.provider.example.com/v1/beforehostprovision/{name}',
    '/hooks.provider.example.com/v1beta1/beforehostprovision/{name}',
  ])
})

/**
 * Starts an environment with the provider's controller of Hosts, core's controller of ExtensionConfigs, and a client for the hooks of the
 * provider and of core. Registers the extension `cellar`.
 */
async function startProvider(inventory: Set<string>) {
  const clock = new VirtualClock()
  const calls: { path: string; body: object }[] = []
  const serve = extensionServer(hostExtension(inventory))
  const connection = { isDown: false }
  const server: FetchHandler = async (request) => {
    if (connection.isDown) throw new NoAnswer('ConnectionRefused', 'connect: connection refused')
    calls.push({ path: new URL(request.url).pathname, body: (await request.clone().json()) as object })
    return serve(request)
  }
  const env = await testEnv({
    clock,
    kinds: [ExtensionConfig, Host],
    controllers({ client }) {
      const extensions = createExtensionClient({
        transport: inProcess(server),
        catalog,
        clock,
        log: silent,
        namespaceLabels: async (name) => (await client.get(Namespace, { name })).metadata.labels ?? {},
      })
      return [createExtensionConfigController({ extensions }), createHostController({ runtime: extensions })]
    },
  })
  await env.client.create(ExtensionConfig, {
    metadata: { name: 'cellar' },
    spec: { clientConfig: { url: 'https://cellar.test' }, settings: { coresAtMost: '16' } },
  })
  await env.settle()
  calls.length = 0
  return {
    ...env,
    connection,
    calls,
    create: async (name: string, cores: number) => {
      await env.client.create(Host, { metadata: { namespace: 'default', name }, spec: { cores } })
      await env.settle()
    },
    state: async (name: string) => {
      const { status, reason, message } = getCondition(await env.client.get(Host, { namespace: 'default', name }), 'Provisioned')!
      return [status, reason, message]
    },
  }
}

let env: { close(): Promise<void> }
afterEach(() => env?.close())

it('the controller calls handlers of both versions, each with a request of its version', async () => {
  const provider = await startProvider(new Set(['default/a']))
  env = provider
  await provider.create('a', 8)
  expect(await provider.state('a')).toEqual(['True', 'Provisioned', ''])
  const path = '/hooks.provider.example.com'
  expect(provider.calls).toEqual([
    {
      path: `${path}/v1beta1/beforehostprovision/inventory`,
      body: {
        apiVersion: 'hooks.provider.example.com/v1beta1',
        kind: 'BeforeHostProvisionRequest',
        hostname: 'default/a',
        settings: { coresAtMost: '16' },
      },
    },
    {
      path: `${path}/v1/beforehostprovision/budget`,
      body: {
        apiVersion: 'hooks.provider.example.com/v1',
        kind: 'BeforeHostProvisionRequest',
        host: { namespace: 'default', name: 'a' },
        cores: 8,
        settings: { coresAtMost: '16' },
      },
    },
  ])
})

it('a Host waits for the retry time of the handlers, and is provisioned when none of them blocks', async () => {
  const inventory = new Set<string>()
  const provider = await startProvider(inventory)
  env = provider
  await provider.create('a', 32)
  const both = 'BeforeHostProvision: default/a is not in the inventory, 32 cores are more than 16'
  expect(await provider.state('a')).toEqual(['False', 'Blocked', both])

  // One minute in v1beta1 is converted to 60 seconds in v1, and the shorter time of the two handlers applies.
  inventory.add('default/a')
  await provider.advance(seconds(59))
  expect(provider.calls).toHaveLength(2)
  await provider.advance(seconds(1))
  expect(provider.calls).toHaveLength(4)
  expect(await provider.state('a')).toEqual(['False', 'Blocked', 'BeforeHostProvision: 32 cores are more than 16'])

  // The controller calls the hook at once after a change of the settings.
  const body = { spec: { settings: { coresAtMost: '32' } } }
  await provider.client.patch(ExtensionConfig, { name: 'cellar' }, { type: 'merge', body })
  await provider.settle()
  expect(await provider.state('a')).toEqual(['True', 'Provisioned', ''])
  provider.calls.length = 0
  await provider.advance(minutes(5))
  expect(provider.calls).toEqual([])
})

it('the hook is called again at once when a user annotates the waiting Host', async () => {
  const inventory = new Set<string>()
  const provider = await startProvider(inventory)
  env = provider
  await provider.create('a', 8)
  inventory.add('default/a')
  const body = { metadata: { annotations: { 'example.com/retry': 'now' } } }
  await provider.client.patch(Host, { namespace: 'default', name: 'a' }, { type: 'merge', body })
  await provider.settle()
  expect(await provider.state('a')).toEqual(['True', 'Provisioned', ''])
})

it('a Host reports a failed call, and is provisioned by a retry when the extension has recovered', async () => {
  const provider = await startProvider(new Set(['default/a']))
  env = provider
  provider.connection.isDown = true
  await provider.create('a', 8)
  const [status, reason, message] = await provider.state('a')
  expect([status, reason]).toEqual(['False', 'HookFailed'])
  expect(message).toMatch(
    /^ConnectionRefused: failed to call extension handlers for hook "BeforeHostProvision.hooks.provider.example.com": .*inventory.cellar/,
  )
  provider.connection.isDown = false
  await provider.advance(minutes(1))
  expect(await provider.state('a')).toEqual(['True', 'Provisioned', ''])
})

it("the extension is discovered by a core with the provider's hooks, and rejected by a core without them", async () => {
  const discovered = async (providerHooks: typeof hostHooks) => {
    const management = await managementEnv({
      providerHooks,
      hookTransport: inProcess(extensionServer(hostExtension(new Set()))),
    })
    env = management
    await management.client.create(ExtensionConfig, {
      metadata: { name: 'cellar' },
      spec: { clientConfig: { url: 'https://cellar.test' } },
    })
    await management.settle()
    const config = await management.client.get(ExtensionConfig, { name: 'cellar' })
    return { handlers: config.status?.handlers?.map(({ name }) => name), ...getCondition(config, 'Discovered') }
  }
  expect(await discovered(hostHooks)).toMatchObject({ status: 'True', handlers: ['inventory.cellar', 'budget.cellar'] })
  await env.close()
  const { status, message } = await discovered([])
  expect(status).toBe('False')
  expect(message).toMatch(/^UnknownHook: .*BeforeHostProvision is not in the Runtime SDK catalog/)
})
