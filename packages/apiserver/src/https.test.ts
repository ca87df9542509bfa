/** Tests the client of `@capstan/kube/node` against the embedded API server, through real sockets. */
import type { Client, WatcherEvent } from '@capstan/kube'
import { ConfigMap, createClient, Namespace, seededRandom, seconds, systemClock, VirtualClock, watchObjects } from '@capstan/kube'
import type { CertifiedKey, ClusterAccess } from '@capstan/kube/node'
import { httpsTransport, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { authenticator } from './auth/authenticate.ts'
import { createHandler } from './http/handler.ts'
import type { Listener } from './listen.ts'
import { listen } from './listen.ts'
import { createApiServer } from '@capstan/kubernetes-kinds'

let ca: CertifiedKey
let serving: CertifiedKey
let admin: CertifiedKey
beforeAll(async () => {
  ca = await makeAuthority(systemClock, { commonName: 'kubernetes' })
  serving = await issueCertificate(ca, systemClock, {
    commonName: 'kube-apiserver',
    usages: ['server'],
    ipAddresses: ['127.0.0.1'],
  })
  admin = await issueCertificate(ca, systemClock, { commonName: 'admin', organizations: ['system:masters'], usages: ['client'] })
})

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
})

async function start() {
  const random = seededRandom(1)
  const server = createApiServer({ clock: systemClock, random })
  cleanups.push(() => server.close())
  await server.ready
  const endpoint = {
    handler: createHandler({ engine: server.engine, clock: systemClock }),
    authenticate: authenticator(),
    serving,
    clientCA: ca.certificate,
  }
  const open = async (port: number): Promise<Listener> => {
    const listener = await listen({ port, endpointFor: () => endpoint, clock: systemClock })
    cleanups.push(() => listener.close(0))
    return listener
  }
  const listener = await open(0)
  const connect = (access: Partial<ClusterAccess> = { certificate: admin.certificate, key: admin.key }): Client => {
    const transport = httpsTransport(
      { server: listener.url, ca: ca.certificate, ...access },
      { clock: systemClock, random, userAgent: 'test/1' },
    )
    cleanups.push(() => transport.close())
    return createClient(transport)
  }
  return { listener, open, connect }
}

const key = { namespace: 'default', name: 'a' }

test('the client creates, patches, applies, lists and deletes an object, and receives errors as StatusErrors', async () => {
  const { connect } = await start()
  const client = connect()
  const created = await client.create(ConfigMap, { metadata: key, data: { a: '1' } })
  expect(created).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { managedFields: [{ manager: 'test' }] } })
  await client.patch(ConfigMap, key, { type: 'merge', body: { data: { b: '2' } } })
  await client.apply(ConfigMap, { metadata: key, data: { c: '3' } }, { fieldManager: 'applier' })
  const { items } = await client.list(ConfigMap, { namespace: 'default' })
  expect(items).toMatchObject([{ apiVersion: 'v1', kind: 'ConfigMap', data: { a: '1', b: '2', c: '3' } }])
  await expect(client.update(ConfigMap, created)).rejects.toMatchObject({ name: 'StatusError', reason: 'Conflict', code: 409 })
  await expect(client.get(ConfigMap, { ...key, name: 'absent' })).rejects.toMatchObject({
    reason: 'NotFound',
    details: { name: 'absent' },
  })
  expect(await client.delete(ConfigMap, key)).toBeUndefined()
  await expect(connect({}).list(Namespace)).rejects.toMatchObject({ reason: 'Unauthorized' })
})

test.each<[string, readonly ('any' | 'client' | 'server')[], 'own' | 'other', boolean]>([
  ['for any use is accepted', ['any'], 'own', true],
  ['for any use is rejected when another authority issued it', ['any'], 'other', false],
  ['for servers only is rejected', ['server'], 'own', false],
])('a client certificate %s', async (_, usages, authority, isAccepted) => {
  const { connect } = await start()
  const issuer = authority === 'own' ? ca : await makeAuthority(systemClock, { commonName: 'kubernetes' })
  const { certificate, key } = await issueCertificate(issuer, systemClock, {
    commonName: 'someone',
    organizations: ['system:masters'],
    usages,
  })
  const listed = connect({ certificate, key }).list(Namespace)
  if (isAccepted) expect((await listed).items.length).toBeGreaterThan(0)
  else await expect(listed).rejects.toMatchObject({ reason: 'Unauthorized' })
})

test('a watcher resumes after a disconnect without listing again', async () => {
  const { listener, open, connect } = await start()
  const client = connect()
  const clock = new VirtualClock()
  const stop = new AbortController()
  const story: string[] = []
  const watching = (async () => {
    for await (const event of watchObjects(client, ConfigMap, { clock, random: seededRandom(2), signal: stop.signal }))
      story.push(textOf(event))
  })()
  const expectEvent = async (line: string) => {
    while (story.at(-1) !== line) {
      await new Promise(setImmediate)
      clock.step(clock.now() + seconds(1))
    }
  }
  await expectEvent('replaced: nothing')
  await client.create(ConfigMap, { metadata: key, data: { a: '1' } })
  await expectEvent('applied a 1')
  await listener.close(0)
  await open(listener.port)
  // This read opens a new connection. Only reads are sent again when the connection is closed: a write may have been executed.
  await client.get(ConfigMap, key)
  await client.patch(ConfigMap, key, { type: 'merge', body: { data: { a: '2' } } })
  await client.delete(ConfigMap, key)
  await expectEvent('deleted a 2')
  stop.abort()
  await watching
  expect(story).toEqual(['replaced: nothing', 'applied a 1', 'applied a 2', 'deleted a 2'])
})

function textOf(event: WatcherEvent<ConfigMap>): string {
  switch (event.kind) {
    case 'replaced':
      return `replaced: ${event.objects.map(({ metadata }) => metadata.name).join() || 'nothing'}`
    case 'progress':
      return 'progress'
    case 'applied':
    case 'deleted':
      return `${event.kind} ${event.object.metadata.name} ${event.object.data?.a}`
  }
}
