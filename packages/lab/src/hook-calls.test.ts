import { BeforeClusterCreate, type Cluster } from '@capstan/api'
import { HookFailed, type RuntimeClient } from '@capstan/extension'
import { expect, test } from 'vitest'
import { lineOf, observeHooks } from './hook-calls.ts'

const head = 'failed to call extension handlers for hook "BeforeClusterCreate.hooks.runtime.cluster.x-k8s.io": '
const refused = 'http call failed: dial tcp 127.0.0.1:9443: connect: connection refused'

test.each([
  [['a.x'], `${head}failed to call extension handler "a.x": ${refused}`, `called on a.x: failed: ${refused}`],
  [
    ['a.x', 'b.x'],
    `${head}failed to call extension handler "b.x": ${refused}`,
    `called on a.x, b.x: failed: failed to call extension handler "b.x": ${refused}`,
  ],
  [
    ['a.x'],
    `${head}failed to call extension handler "a.x": not called, because the last 5 calls failed: ${refused}`,
    `not called on a.x: the last 5 calls failed: ${refused}`,
  ],
  [
    ['a.x'],
    'failed to call extension handler "a.x": got failure response with message: no',
    'called on a.x: failed: got failure response with message: no',
  ],
  [['a.x'], 'out of order', 'called on a.x: failed: out of order'],
])(
  'the line of a failed call of %j does not repeat the hook, or the handler if it is the only one: %s',
  (handlers, message, text) => {
    const call = { hook: 'BeforeClusterCreate', handlers, subject: 'Cluster default/demo', cluster: 'default/demo' }
    expect(lineOf({ ...call, answer: { kind: 'failed', message } }).text).toBe(`BeforeClusterCreate ${text}`)
  },
)

test('a failure that the failure policy ignores has its own line, and the line of the response omits the failed handler', async () => {
  const runtime: RuntimeClient = {
    ready: true,
    handlersFor: async () => ['a.x', 'b.x'],
    call: async () => ({ status: 'Success' }) as never,
    async callAll(_hook, _forObject, _request, options) {
      options?.onIgnored?.('a.x', new HookFailed('unreachable', refused))
      return { status: 'Success', retryAfterSeconds: 0 } as never
    },
  }
  const lines: string[] = []
  const observed = observeHooks(runtime, (call) => void lines.push(lineOf(call).text))
  const cluster = { kind: 'Cluster', metadata: { name: 'demo', namespace: 'default' } } as Cluster
  await observed.callAll(BeforeClusterCreate, cluster, { cluster })
  expect(lines).toEqual([
    `BeforeClusterCreate called on a.x: failed, ignored by the failure policy: ${refused}`,
    'BeforeClusterCreate called on b.x: proceed',
  ])
})
