import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Client,
  createClient,
  CustomResourceDefinition,
  Lease,
  Namespace,
  sleep,
  systemClock,
  systemRandom,
} from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runToEnd, start, type Started } from '../test-io.ts'

const folder = mkdtempSync(join(tmpdir(), 'capstan-leader-'))
const kubeconfig = join(folder, 'kubeconfig')
const closing: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

let client: Client
beforeAll(async () => {
  const server = start(['apiserver', '--data', join(folder, 'data'), '--secure-port', '0', '--kubeconfig', kubeconfig])
  closing.push(() => server.interrupt())
  await server.line(/API server ready/)
  const transport = httpsTransport(await loadKubeconfig(kubeconfig), { clock: systemClock, random: systemRandom })
  closing.push(() => transport.close())
  client = createClient(transport)
})

const flags = ['--no-webhooks', '--kubeconfig', kubeconfig, '--providers', 'core', '--diagnostics-port', '0']
/** A short retry period, because tests wait for retries. The other durations are long enough for a busy machine. */
const shortRetryFlags = [
  '--leader-elect-lease-duration',
  '30s',
  '--leader-elect-renew-deadline',
  '20s',
  '--leader-elect-retry-period',
  '100ms',
]
const key = { namespace: 'capi-system', name: 'controller-leader-election-capi' }
const untilLogged = async (manager: Started, text: string) => {
  while (!manager.err.some((line) => line.includes(text))) await sleep(systemClock, 10)
}

test('one manager leads and installs the kinds; when it stops, the second takes over, and exits with 1 if it loses the Lease', async () => {
  const first = start(['manager', ...flags, '--leader-elect', ...shortRetryFlags])
  await first.line(/Manager ready/)
  expect(await client.get(Namespace, { name: key.namespace })).toBeDefined()
  const { spec } = await client.get(Lease, key)
  expect(spec).toMatchObject({ holderIdentity: expect.stringMatching(/^capstan_[^_]+_[^_]+$/), leaseDurationSeconds: 30 })
  expect((await client.list(CustomResourceDefinition)).items.length).toBeGreaterThan(5)

  const second = start(['manager', ...flags, '--leader-elect', ...shortRetryFlags])
  await second.line(/Manager ready/)
  await untilLogged(second, 'Another candidate holds the leader lease')
  expect(await first.interrupt()).toBe(0)
  await untilLogged(second, 'Successfully acquired leader lease')
  expect((await client.get(Lease, key)).spec).toMatchObject({ leaseTransitions: 1 })

  await client.patch(Lease, key, { type: 'merge', body: { spec: { holderIdentity: 'somebody' } } })
  expect(await second.done).toBe(1)
  expect(second.err.join('\n')).toContain('capstan: Leader election lost: somebody holds the lease')
  await client.delete(Lease, key)
})

test("a manager does not run beside upstream's, with or without leader election", async () => {
  const renewTime = new Date(systemClock.now()).toISOString().replace('Z', '000Z')
  const metadata = { name: key.name, namespace: 'default' }
  const holderIdentity = 'capi-controller-manager-7d9f_b1b5'
  await client.create(Lease, { metadata, spec: { holderIdentity, leaseDurationSeconds: 15, renewTime } })
  for (const electionFlags of [[], ['--leader-elect'], ['--leader-elect=false', '--leader-elect-renew-deadline', '20s']]) {
    const { code, err } = await runToEnd(['manager', ...flags, ...electionFlags])
    expect(code).toBe(2)
    expect(err).toContain(
      `Cannot run the core controllers beside upstream's core manager: ${holderIdentity} holds Lease default/${key.name}, renewed ${renewTime}\n` +
        'stop it first: kubectl -n default scale deployment capi-controller-manager --replicas 0',
    )
  }
})

test("a stale Lease of upstream's manager does not block a start, unless it is renewed during the lease duration", async () => {
  const lease = { namespace: 'default', name: key.name }
  const spec = { holderIdentity: 'gone_b1b5', leaseDurationSeconds: 1, renewTime: '2020-01-01T00:00:00.000000Z' }
  await client.patch(Lease, lease, { type: 'merge', body: { spec } })
  const manager = start(['manager', ...flags])
  await manager.line(/Manager ready/)
  await manager.interrupt()

  const rejectedManager = start(['manager', ...flags])
  let isDone = false
  void rejectedManager.done.then(() => (isDone = true))
  for (let renewal = 0; !isDone; renewal++) {
    const renewTime = new Date(Date.UTC(2020, 0, 1) + renewal * 1000).toISOString().replace('Z', '000Z')
    await client.patch(Lease, lease, { type: 'merge', body: { spec: { renewTime } } })
    await sleep(systemClock, 100)
  }
  expect(await rejectedManager.done).toBe(2)
})

test('rejects durations that would allow two leaders', async () => {
  const { code, err } = await runToEnd(['manager', ...flags, '--leader-elect=true', '--leader-elect-renew-deadline', '20s'])
  expect(code).toBe(2)
  expect(err).toContain('leaseDuration must be greater than renewDeadline')
})

test('a manager of the core provider and one of the local provider lead at the same time, each with its own Lease', async () => {
  const core = start(['manager', ...flags, '--leader-elect', ...shortRetryFlags])
  await core.line(/Manager ready/)
  const local = start([
    'manager',
    '--no-webhooks',
    '--kubeconfig',
    kubeconfig,
    '--providers',
    'local',
    '--diagnostics-port',
    '0',
    '--leader-elect',
    ...shortRetryFlags,
  ])
  await untilLogged(local, 'Successfully acquired leader lease')
  await local.line(/Manager ready/)
  expect((await client.get(Lease, { ...key, name: 'capstan-local' })).spec?.holderIdentity).toMatch(/^capstan_/)
  expect((await client.get(Lease, key)).spec?.holderIdentity).toMatch(/^capstan_/)
  expect([await local.interrupt(), await core.interrupt()]).toEqual([0, 0])
})
