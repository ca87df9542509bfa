import { Cluster } from '@capstan/api'
import { getCondition, minutes, orAbsent } from '@capstan/kube'
import { testEnv } from '@capstan/testing'
import { expect, test } from 'vitest'
import { lifetimeController } from './controller.ts'
import { Lifetime } from './lifetime.ts'

test('deletes a Cluster when its lifetime ends, and not before', async () => {
  const env = await testEnv({ kinds: [Cluster, Lifetime], controllers: [lifetimeController] })
  const key = { namespace: 'default', name: 'short' }
  await env.client.create(Cluster, {
    metadata: key,
    spec: { infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'LocalCluster', name: 'short' } },
  })
  await env.client.create(Lifetime, { metadata: key, spec: { clusterName: 'short', minutes: 60 } })

  await env.advance(minutes(59))
  expect(await env.client.get(Cluster, key)).toMatchObject({ metadata: { name: 'short' } })
  expect(getCondition(await env.client.get(Lifetime, key), 'Expired')).toMatchObject({ status: 'False', reason: 'Alive' })

  await env.advance(minutes(1))
  expect(await orAbsent(env.client.get(Cluster, key))).toBeUndefined()
  expect(getCondition(await env.client.get(Lifetime, key), 'Expired')).toMatchObject({ status: 'True' })
  await env.close()
})
