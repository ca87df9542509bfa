/** Watchers on real sockets that do not read during many writes: they do not delay other watchers, and share the memory of one history. */
import { once } from 'node:events'
import { connect } from 'node:http2'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ConfigMap, createClient, seededRandom, systemClock } from '@capstan/kube'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'
import { expect, test } from 'vitest'
import { authenticator } from './auth/authenticate.ts'
import { createHandler } from './http/handler.ts'
import { listen } from './listen.ts'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { memoryStore } from './store/memory.ts'

test('watchers that do not read share the memory of one history, do not delay a watcher that reads, and are ended', async () => {
  const clock = systemClock
  const authority = await makeAuthority(clock, { commonName: 'kubernetes' })
  const serving = await issueCertificate(authority, clock, { commonName: 's', usages: ['server'], ipAddresses: ['127.0.0.1'] })
  const server = createApiServer({ clock, random: seededRandom(1), store: memoryStore({ history: { changes: 200 } }) })
  await server.ready
  const authenticate = authenticator(new Map([['t', { name: 'a', groups: ['system:masters'] }]]))
  const endpoint = { handler: createHandler({ engine: server.engine, clock }), authenticate, serving }
  const listener = await listen({ port: 0, endpointFor: () => endpoint, clock })
  const session = connect(listener.url, { ca: authority.certificate })
  const watch = async () => {
    const path = '/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=1'
    const stream = session.request({ ':path': path, authorization: 'Bearer t' })
    await once(stream, 'response')
    return stream
  }
  try {
    const slow = await Promise.all(Array.from({ length: 50 }, watch))
    for (const stream of slow) stream.pause()
    let read = 0
    const reader = await watch()
    reader.on('data', (part: Buffer) => {
      for (const byte of part) if (byte === 10) read++
    })

    const before = inUse()
    const client = createClient(server.transport())
    const key = { namespace: 'default', name: 'large' }
    await client.create(ConfigMap, { metadata: key, data: {} })
    const writes = 1200
    for (let count = 0; count < writes; count++) {
      await client.patch(ConfigMap, key, { type: 'merge', body: { data: { text: `${count} ${'x'.repeat(100_000)}` } } })
      // Waits only for the watcher that reads.
      while (read <= count) await new Promise(setImmediate)
    }
    const used = inUse() - before
    // All changes together are 240 MB of objects and bytes. Without slow watchers, about 90 MB stay in memory.
    expect(used / 2 ** 20).toBeLessThan(200)
    await Promise.all(slow.map((stream) => once(stream.resume(), 'end')))
  } finally {
    session.destroy()
    await listener.close(0)
    await server.close()
  }
})

function inUse(): number {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
