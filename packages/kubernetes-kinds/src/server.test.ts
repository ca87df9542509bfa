import { ConfigMap, createClient, seededRandom, VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { createApiServer } from './server.ts'

test('in-process requests wait until the server is ready', async () => {
  // A busy process: the first request, which creates the namespace `default`, yields to the event loop.
  let calls = 0
  const yieldIfDue = () => (calls++ === 0 ? new Promise<void>((resolve) => setImmediate(resolve)) : undefined)
  const server = createApiServer({ clock: Object.assign(new VirtualClock(), { yieldIfDue }), random: seededRandom(1) })
  const created = createClient(server.transport()).create(ConfigMap, { metadata: { name: 'a', namespace: 'default' }, data: {} })
  await expect(created).resolves.toMatchObject({ kind: 'ConfigMap' })
  await server.close()
})
