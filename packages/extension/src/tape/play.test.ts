import {
  BeforeClusterCreate,
  BeforeClusterUpgrade,
  createCatalog,
  type ExtensionConfig,
  GeneratePatches,
  hookCatalog,
} from '@capstan/api'
import { type KubeObject, silent, VirtualClock } from '@capstan/kube'
import { describe, expect, it, test } from 'vitest'
import { fail, holdFor, proceedNow, proceedWith } from '../author/answer.ts'
import { createExtensionClient, type ExtensionClient } from '../client/client.ts'
import { defineExtension, type Extension, on } from '../author/define-extension.ts'
import type { Difference } from '../test-kit/differences.ts'
import { fixture } from '../test-kit/fixtures.ts'
import type { ObservedCall } from '../client/observed-call.ts'
import { type FetchHandler, extensionServer } from '../server/server.ts'
import { type HookTransport, inProcess } from '../client/transport.ts'
import { tapedConfigs, tapeTransport } from './play.ts'
import { tapedCall } from './recorder.ts'
import { resendTape } from './resend.ts'
import type { Tape } from './tape.ts'

const clock = new VirtualClock()
const catalog = createCatalog(hookCatalog)
const object = { kind: 'Cluster', metadata: { name: 'demo', namespace: 'default' } } as KubeObject

async function clientOver(transport: HookTransport, settings: { [name: string]: string } = {}): Promise<ExtensionClient> {
  const client = createExtensionClient({ transport, catalog, clock, log: silent, namespaceLabels: async () => ({}) })
  const config = { metadata: { name: 'x' }, spec: { clientConfig: { url: 'https://x' }, settings } } as ExtensionConfig
  client.warmUp([])
  client.register({ ...config, status: { handlers: await client.discover(config) } })
  return client
}

const server = (...handlers: Extension['handlers']): FetchHandler => extensionServer(defineExtension({ name: 'x', handlers }))

/** Returns a tape with a discovery and the calls that `work` makes with a client of the server. */
async function taped(
  handle: FetchHandler,
  work: (client: ExtensionClient) => Promise<unknown>,
  settings?: { [name: string]: string },
): Promise<Tape> {
  const observedCalls: ObservedCall[] = []
  const transport = inProcess(handle)
  const client = await clientOver(transport, settings)
  client.observe((call) => observedCalls.push(call))
  await client.discover({ metadata: { name: 'x' }, spec: { clientConfig: { url: 'https://x/prefix' } } } as ExtensionConfig)
  await work(client)
  const calls = observedCalls.map((call, index) => ({ ...tapedCall(call), line: index + 2 }))
  return { header: { tape: 'capstan.dev/hook-calls', version: 1, began: '' }, calls, isLastLineIncomplete: false }
}

const callBeforeClusterCreate = (client: ExtensionClient, change: object = {}) => {
  const request = fixture(BeforeClusterCreate)
  return client.callAll(BeforeClusterCreate, object, { cluster: { ...request.cluster, ...change } })
}
const outcome = (promise: Promise<unknown>) => promise.catch(({ code, problem, message }) => ({ code, problem, message }))

describe('a tape as transport for core', () => {
  it('returns responses to equal requests in the order of the tape, and then repeats the last one', async () => {
    let nth = 0
    const gate = on(BeforeClusterCreate, { name: 'gate' }, () => (nth++ < 2 ? holdFor(5, `wait ${nth}`) : proceedNow()))
    const tape = await taped(server(gate), async (client) => {
      for (let i = 0; i < 3; i++) await callBeforeClusterCreate(client)
    })
    const client = await clientOver(tapeTransport(tape))
    const answers = []
    for (let i = 0; i < 5; i++) answers.push(await callBeforeClusterCreate(client))
    expect(answers.map(({ retryAfterSeconds, message }) => `${retryAfterSeconds} ${message ?? ''}`)).toEqual([
      '5 wait 1',
      '5 wait 2',
      '0 ',
      '0 ',
      '0 ',
    ])
  })

  it('ignores values that differ from run to run', async () => {
    const tape = await taped(server(on(BeforeClusterCreate, { name: 'gate' }, () => holdFor(5, 'wait'))), callBeforeClusterCreate)
    const client = await clientOver(tapeTransport(tape))
    const { cluster } = fixture(BeforeClusterCreate)
    const metadata = {
      ...cluster.metadata,
      uid: '00000000-0000-4000-8000-000000000000',
      resourceVersion: '7',
      generation: 9,
      creationTimestamp: '2030-01-01T00:00:00Z',
      finalizers: ['x'],
    }
    const spec = { ...cluster.spec, controlPlaneEndpoint: { host: '127.0.0.1', port: 1234 } }
    expect(await callBeforeClusterCreate(client, { metadata, spec })).toMatchObject({ retryAfterSeconds: 5 })
  })

  it('replaces the uids in a response with those of the request', async () => {
    const patches = on(GeneratePatches, { name: 'patches' }, ({ request }) =>
      proceedWith({ items: request.items.map(({ uid }) => ({ uid, patchType: 'JSONMergePatch' as const, patch: 'e30=' })) }),
    )
    const request = fixture(GeneratePatches)
    const tape = await taped(server(patches), (client) => client.call(GeneratePatches, object, 'patches.x', request))
    const client = await clientOver(tapeTransport(tape))
    const items = request.items.map((item, index) => ({ ...item, uid: `aaaaaaaa-0000-4000-8000-00000000000${index}` }))
    const answer = await client.call(GeneratePatches, object, 'patches.x', { ...request, items })
    expect(answer.items?.map(({ uid }) => uid)).toEqual(items.map(({ uid }) => uid))
  })

  test.each<[string, FetchHandler]>([
    ['the failure of an extension', server(on(BeforeClusterCreate, { name: 'gate' }, () => fail('no')))],
    [
      'the failure of a handler that throws',
      server(
        on(BeforeClusterCreate, { name: 'gate' }, () => {
          throw new Error('bug')
        }),
      ),
    ],
    [
      'the failure for an invalid response',
      async (request) => (/create/.test(request.url) ? new Response('<html>') : server(gate)(request)),
    ],
  ])('repeats %s with the same code, problem and message', async (_, handle) => {
    let recordedOutcome: unknown
    const tape = await taped(handle, async (client) => {
      recordedOutcome = await outcome(callBeforeClusterCreate(client))
    })
    const client = await clientOver(tapeTransport(tape))
    expect(recordedOutcome).toHaveProperty('code')
    expect(await outcome(callBeforeClusterCreate(client))).toEqual(recordedOutcome)
  })

  it('reports how an unknown request differs from the most similar call, as a failure that no failure policy ignores', async () => {
    const ignoring = on(BeforeClusterCreate, { name: 'gate', failurePolicy: 'Ignore' }, () => proceedNow())
    const tape = await taped(server(ignoring), callBeforeClusterCreate)
    const client = await clientOver(tapeTransport(tape))
    const spec = { topology: { classRef: { name: 'quick' }, version: 'v2.0.0' } }
    expect(await outcome(callBeforeClusterCreate(client, { spec }))).toMatchObject({
      code: 'not-registered',
      message: expect.stringMatching(
        /the tape has no response for \/hooks\.runtime\.cluster\.x-k8s\.io\/v1alpha1\/beforeclustercreate\/gate of ExtensionConfig x: the request is not among its 1 calls; the most similar one is line 3: request\.cluster\.spec\.clusterNetwork: \{.*\} on the tape, nothing now \(and \d more\)$/,
      ),
    })
  })

  it('fails a call of a handler without calls on the tape', async () => {
    const upgrade = on(BeforeClusterUpgrade, { name: 'upgrade' }, () => proceedNow())
    const tape = await taped(server(upgrade), async () => {})
    const client = await clientOver(tapeTransport(tape))
    const called = client.callAll(BeforeClusterUpgrade, object, fixture(BeforeClusterUpgrade))
    expect(await outcome(called)).toMatchObject({ message: expect.stringMatching(/: it has no call of this handler$/) })
  })

  it('compares requests after their redaction, because the tape contains no secrets', async () => {
    const settings = { region: 'eu1', apiToken: 'canary' }
    const tape = await taped(server(gate), callBeforeClusterCreate, settings)
    expect(JSON.stringify(tape)).not.toContain('canary')
    expect(await callBeforeClusterCreate(await clientOver(tapeTransport(tape), settings))).toMatchObject({ status: 'Success' })
    expect(tapedConfigs(tape)).toEqual([{ name: 'x', url: 'https://x', settings: { region: 'eu1', apiToken: '[redacted]' } }])
  })
})

const gate = on(BeforeClusterCreate, { name: 'gate' }, () => holdFor(5, 'wait'))

describe('a tape sent to an extension', () => {
  const resend = async (tape: Tape, handle: FetchHandler, overrides: { handler?: string; hook?: string } = {}) => {
    const options = {
      server: { url: 'https://x' },
      catalog,
      transport: inProcess(handle),
      clock,
      timeoutSeconds: 10,
      ...overrides,
    }
    const resent: (readonly [string, readonly Difference[]])[] = []
    for await (const { call, differences } of resendTape(tape, options)) resent.push([call.hook, differences])
    return resent
  }

  it('reports no differences when nothing has changed', async () => {
    const tape = await taped(server(gate), callBeforeClusterCreate)
    expect(await resend(tape, server(gate))).toEqual([
      ['Discovery', []],
      ['BeforeClusterCreate', []],
    ])
  })

  it('reports the paths of differences, also in patches', async () => {
    const patches = (value: string) =>
      on(GeneratePatches, { name: 'patches' }, ({ request }) => {
        const patch = btoa(JSON.stringify([{ op: 'add', path: '/spec/a', value }]))
        return proceedWith({ items: [{ uid: request.items[0]!.uid, patchType: 'JSONPatch', patch }] })
      })
    const request = fixture(GeneratePatches)
    const ask = (client: ExtensionClient) => client.call(GeneratePatches, object, 'patches.x', request)
    const tape = await taped(server(patches('a')), ask)
    expect(await resend(tape, server(patches('b')), { hook: 'GeneratePatches' })).toEqual([
      ['GeneratePatches', [{ path: 'items[0].patch[0].value', before: 'a', after: 'b' }]],
    ])
  })

  it('reports the failure of a call that succeeded on the tape', async () => {
    const tape = await taped(server(gate), callBeforeClusterCreate)
    expect(await resend(tape, server(), { handler: 'gate' })).toEqual([
      [
        'BeforeClusterCreate',
        [
          { path: 'failure', after: 'NotFound' },
          { path: 'message', before: 'wait' },
          { path: 'retryAfterSeconds', before: 5 },
          { path: 'status', before: 'Success' },
        ],
      ],
    ])
  })
})
