import { BeforeClusterCreate, Cluster, ExtensionConfig } from '@capstan/api'
import { defineExtension, extensionServer, listen, on, proceedNow } from '@capstan/extension'
import type { Client, DeclaredKind, KubeObject } from '@capstan/kube'
import { createClient, orAbsent, Secret, seededRandom, systemClock, unknownKind } from '@capstan/kube'
import { httpsTransport, issueCertificate, loadKubeconfig, makeAuthority } from '@capstan/kube/node'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { advertisedAddress } from '../advertised-address.ts'
import { runToEnd, start, type Started } from '../test-io.ts'

const services = unknownKind({ apiVersion: 'v1', kind: 'Service', plural: 'services' })
const endpoints = unknownKind({ apiVersion: 'v1', kind: 'Endpoints', plural: 'endpoints' })
const slices = unknownKind({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', plural: 'endpointslices' })

const root = mkdtempSync(join(tmpdir(), 'capstan-up-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
let data: string
let folders = 0
beforeEach(() => {
  data = join(root, String(folders++))
})

const running: Started[] = []
const up = (...flags: string[]): Started => {
  const command = start(['up', '--data', data, ...flags])
  running.push(command)
  return command
}
afterEach(async () => {
  for (const command of running.splice(0)) await command.interrupt()
})

async function withClient<T>(use: (client: Client) => Promise<T>): Promise<T> {
  const access = await loadKubeconfig(join(data, 'kubeconfig'))
  const transport = httpsTransport(access, { clock: systemClock, random: seededRandom(1) })
  try {
    return await use(createClient(transport))
  } finally {
    transport.close()
  }
}

/** Watches the objects of a kind until a condition of the named object has the status. */
async function untilCondition(client: Client, kind: DeclaredKind, name: string, type: string, status = 'True'): Promise<void> {
  const done = new AbortController()
  for await (const { object } of await client.watch(kind, { signal: done.signal })) {
    const { conditions = [] } =
      (object as KubeObject & { status?: { conditions?: { type: string; status: string }[] } }).status ?? {}
    if (object.metadata.name === name && conditions.some((condition) => condition.type === type && condition.status === status))
      break
  }
  done.abort()
}

/** Returns the process ids of running sample extensions that this process started. Each of them leads its own session. */
const children = (): string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      const [, parent, , session] = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /, '')
        .split(' ')
      const isOurs = Number(parent) === process.pid && session === pid
      return isOurs && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('sample-extension')
    } catch {
      return false
    }
  })

describe('capstan up --demo', () => {
  test('with --exit-when-ready exits with 0 when the cluster is Available; the next start continues with the stored state, and locks the data folder', async () => {
    const first = await runToEnd(['up', '--demo', '--exit-when-ready', '--data', data, '--port', '0'])
    expect(first.err).toBe('')
    expect(first.code).toBe(0)
    expect(first.out).toMatch(/BeforeClusterCreate called on .*: wait 2 s/)
    expect(first.out).toMatch(/Cluster default\/demo: Available after \d+\.\d s\n/)
    expect(children()).toEqual([])
    const kubeconfig = readFileSync(join(data, 'kubeconfig'), 'utf8')
    for (const file of ['kubeconfig', 'pki/ca.key', 'pki/admin.key'])
      expect(statSync(join(data, file)).mode & 0o777, file).toBe(0o600)

    const second = up('--demo', '--output', 'json')
    await second.line(/"Ready"/)
    const events = second.out.map((line) => JSON.parse(line) as { event: string; text: string; subject: string })
    expect(events[0]).toMatchObject({
      event: 'ApiServerReady',
      text: expect.stringContaining(/server: (.*)/.exec(kubeconfig)![1]!),
    })
    expect(events.find(({ event }) => event === 'ClusterCreated')?.text).toMatch(/^found/)
    expect(events.filter(({ event }) => event.startsWith('Hook'))).toEqual([])
    // Discovery fails until the new extension process is registered, but these failures are not printed.
    expect(events.filter(({ event }) => event === 'ExtensionNotDiscovered')).toEqual([])
    expect(readFileSync(join(data, 'kubeconfig'), 'utf8')).toBe(kubeconfig)

    // The command has stored the authority of the extension's certificate in a Secret. Core has copied it to the caBundle.
    const [{ data: authority }, { metadata, spec }] = await withClient((client) =>
      Promise.all([
        client.get(Secret, { namespace: 'default', name: 'sample-extension-ca' }),
        client.get(ExtensionConfig, { name: 'sample' }),
      ]),
    )
    expect(metadata.annotations?.['runtime.cluster.x-k8s.io/inject-ca-from-secret']).toBe('default/sample-extension-ca')
    expect(spec.clientConfig.caBundle).toBe(authority?.['ca.crt'])

    const { code, out } = await runToEnd(['kubeconfig', 'demo', '--kubeconfig', join(data, 'kubeconfig')])
    expect(code).toBe(0)
    expect(out).toContain('kind: Config')
    const missing = await runToEnd(['kubeconfig', 'prod', '-n', 'team', '--kubeconfig', join(data, 'kubeconfig')])
    expect(missing).toEqual({
      code: 1,
      out: '',
      err: 'capstan: Cannot read the kubeconfig of Cluster team/prod: Secret team/prod-kubeconfig does not exist. Either there is no such Cluster, or its control plane is not initialized yet',
    })

    const third = await runToEnd(['up', '--data', data, '--port', '0'])
    expect(third).toEqual({
      code: 1,
      out: '',
      err: expect.stringMatching(
        /^capstan: Cannot open data folder \S+: process \d+ uses it and serves https:\/\/127\.0\.0\.1:\d+$/,
      ),
    })

    expect(children()).toHaveLength(1)
    expect(await second.interrupt()).toBe(0)
    expect(second.err).toEqual([])
    expect(children()).toEqual([])
  })

  test('with --exit-when-ready exits with 1 and the reason when a required extension is unreachable', async () => {
    const authority = await makeAuthority(systemClock, { commonName: 'gate' })
    const served = await issueCertificate(authority, systemClock, {
      commonName: 'gate',
      usages: ['server'],
      ipAddresses: ['127.0.0.1'],
    })
    const gate = defineExtension({ name: 'gate', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => proceedNow())] })
    const server = await listen(extensionServer(gate), { host: '127.0.0.1', port: 0, ...served })
    const management = up('--port', '0')
    await management.line(/ready at/)
    await withClient(async (client) => {
      const caBundle = Buffer.from(authority.certificate).toString('base64')
      await client.create(ExtensionConfig, { metadata: { name: 'gate' }, spec: { clientConfig: { url: server.url, caBundle } } })
      await untilCondition(client, ExtensionConfig, 'gate', 'Discovered')
    })
    await management.interrupt()
    await server.close()

    const { code, err } = await runToEnd(['up', '--demo', '--exit-when-ready', '--timeout', '2s', '--data', data])
    expect(code).toBe(1)
    expect(err).toMatch(
      /^capstan: Cluster demo is not Available after 2s: TopologyReconciled is False: .*failed to call extension handler "gate\.gate": .*http call failed: .*connection refused/,
    )
    expect(children()).toEqual([])
  })
})

describe('Ctrl-C', () => {
  test.each([
    { when: 'before the first object exists', flags: ['--demo'], after: undefined, code: 0 },
    { when: 'while the cluster is being created', flags: ['--demo'], after: /BeforeClusterCreate/, code: 0 },
    { when: 'with --exit-when-ready', flags: ['--demo', '--exit-when-ready'], after: /ClusterClass/, code: 130 },
  ])('$when stops the command and the sample extension without an error: exit code $code', async ({ flags, after, code }) => {
    const command = up(...flags, '--port', '0')
    if (after) await command.line(after)
    expect(await command.interrupt()).toBe(code)
    expect(command.err).toEqual([])
    expect(children()).toEqual([])
  })
})

describe('the error for a port in use', () => {
  test('names the port', async () => {
    const occupant = createServer()
    const port = await new Promise<number>((resolve) => {
      occupant.listen(0, '127.0.0.1', () => resolve((occupant.address() as { port: number }).port))
    })
    const { code, err } = await runToEnd(['up', '--data', data, '--port', String(port)])
    occupant.close()
    expect(code).toBe(1)
    expect(err).toContain(`capstan: Cannot listen on 127.0.0.1:${port}: the port is in use by another process`)
  })
})

test('capstan up without --demo serves the API, and stores objects', async () => {
  const first = up('--port', '0')
  await first.line(/ready at/)
  await withClient((client) =>
    client.create(Cluster, {
      metadata: { name: 'mine', namespace: 'default' },
      spec: { topology: { classRef: { name: 'later' }, version: 'v1.36.0' } },
    }),
  )
  expect(await first.interrupt()).toBe(0)
  const second = up()
  await second.line(/ready at/)
  expect(await withClient((client) => client.get(Cluster, { namespace: 'default', name: 'mine' }))).toMatchObject({
    spec: { topology: { classRef: { name: 'later' } } },
  })
})

test('capstan up publishes its address as Service, Endpoints and EndpointSlice kubernetes', async () => {
  const command = up('--port', '0')
  const ready = await command.line(/ready at https/)
  const port = Number(/:(\d+)$/.exec(ready)![1])
  const key = { namespace: 'default', name: 'kubernetes' }
  const address = advertisedAddress('127.0.0.1', networkInterfaces())
  // Without a network there is no address that another machine could reach.
  const isReachable = address !== '127.0.0.1'
  await withClient(async (client) => {
    expect(await orAbsent(client.get(services, key))).toMatchObject({ spec: { ports: [{ port: 443, targetPort: port }] } })
    const [published, slice] = await Promise.all([orAbsent(client.get(endpoints, key)), orAbsent(client.get(slices, key))])
    const ports = [{ name: 'https', port, protocol: 'TCP' }]
    expect({ published, slice }).toEqual(
      isReachable
        ? {
            published: expect.objectContaining({ subsets: [{ addresses: [{ ip: address }], ports }] }),
            slice: expect.objectContaining({ endpoints: [{ addresses: [address], conditions: { ready: true } }], ports }),
          }
        : { published: undefined, slice: undefined },
    )
  })
})

test('capstan up without --demo prints how to create the demo; a second start on its data folder names the pid and URL of the first', async () => {
  const first = up('--port', '0')
  const ready = await first.line(/ready at https/)
  const url = /https:\S+/.exec(ready)![0]
  await first.line(/delete cluster demo/)
  const suggested = first.out.join('\n')
  expect(suggested).toMatch(/apply -f \S*class\.yaml/)
  expect(suggested).not.toContain('patch cluster demo')
  expect(suggested).toContain('the next start continues where it stopped')
  expect(await runToEnd(['up', '--data', data, '--port', '0'])).toEqual({
    code: 1,
    out: '',
    err: `capstan: Cannot open data folder ${data}: process ${process.pid} uses it and serves ${url}`,
  })
  expect(await first.interrupt()).toBe(0)
  expect(readdirSync(data)).not.toContain('owner.json')
})

test('capstan up --memory prints that the state will be lost', async () => {
  const command = start(['up', '--memory', '--port', '0', '--kubeconfig', join(data, 'kubeconfig')])
  running.push(command)
  expect(await command.line(/Try in another terminal/)).toContain(
    'Ctrl-C here stops the management cluster; its state is lost then',
  )
})
