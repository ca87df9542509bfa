import { Cluster } from '@capstan/api'
import { memoryStore } from '@capstan/apiserver'
import { minutes, orAbsent, VirtualClock } from '@capstan/kube'
import { testEnv } from '@capstan/testing'
import { expect, test } from 'vitest'
import { lifetimeController } from './controller.ts'
import { Lifetime } from './lifetime.ts'

test('deletes a Cluster whose lifetime ended while no controller was running', async () => {
  const [clock, store] = [new VirtualClock(), memoryStore()]
  // The second environment uses the store of the first one, so the first one must not close it.
  store.close = () => Promise.resolve()
  const start = () => testEnv({ kinds: [Cluster, Lifetime], controllers: [lifetimeController], clock, store })
  const key = { namespace: 'default', name: 'short' }

  const first = await start()
  await first.client.create(Cluster, {
    metadata: key,
    spec: { infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'LocalCluster', name: 'short' } },
  })
  await first.client.create(Lifetime, { metadata: key, spec: { clusterName: 'short', minutes: 60 } })
  await first.advance(minutes(30))
  await first.close()

  clock.step(clock.now() + minutes(45))

  const second = await start()
  await second.settle()
  expect(await orAbsent(second.client.get(Cluster, key))).toBeUndefined()
  await second.close()
})
