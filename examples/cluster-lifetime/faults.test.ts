import { Cluster } from '@capstan/api'
import { minutes, orAbsent, seconds, StatusError, type Transport } from '@capstan/kube'
import { testEnv } from '@capstan/testing'
import { expect, test } from 'vitest'
import { lifetimeController } from './controller.ts'
import { Lifetime } from './lifetime.ts'

test('deletes the Cluster although delete requests fail for a while, and then writes nothing', async () => {
  let isAvailable = true
  const between = (transport: Transport): Transport => ({
    ...transport,
    async send(request, signal) {
      if (request.verb === 'delete' && !isAvailable) throw new StatusError('ServiceUnavailable', 'try again')
      return transport.send(request, signal)
    },
  })
  const env = await testEnv({ kinds: [Cluster, Lifetime], controllers: [lifetimeController], between })
  const key = { namespace: 'default', name: 'short' }
  await env.client.create(Cluster, {
    metadata: key,
    spec: { infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'LocalCluster', name: 'short' } },
  })
  await env.client.create(Lifetime, { metadata: key, spec: { clusterName: 'short', minutes: 60 } })

  isAvailable = false
  await env.advance(minutes(61))
  expect(await orAbsent(env.client.get(Cluster, key))).toBeDefined()

  isAvailable = true
  await env.advance(minutes(2))
  expect(await orAbsent(env.client.get(Cluster, key))).toBeUndefined()

  const before = env.store.revision
  await env.advance(seconds(3600))
  expect(env.store.revision).toBe(before)
  await env.close()
})
