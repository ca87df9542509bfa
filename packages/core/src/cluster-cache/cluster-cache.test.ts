import { Cluster } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import { type Client, createClient, type KubeObject, Secret, seededRandom, silent, VirtualClock } from '@capstan/kube'
import { advance as advanceClock, createTraffic } from '@capstan/testing'
import { expect, test } from 'vitest'
import { createClusterCache } from './cluster-cache.ts'

const key = { namespace: 'default', name: 'demo' }

test('a process that no longer reconciles a Cluster closes its connection', async () => {
  const clock = new VirtualClock()
  let closed = 0
  const workload = (): Client =>
    createClient({
      close: () => void closed++,
      send: () => Promise.resolve({ metadata: { resourceVersion: '1' }, items: [] }),
      watch: (_, signal) =>
        Promise.resolve(
          (async function* () {
            await new Promise((resolve) => signal.addEventListener('abort', resolve))
            yield* []
          })(),
        ),
    })
  const clusters = createClusterCache({ connect: () => Promise.resolve(workload()), clock, random: seededRandom(1), log: silent })
  const cluster = { metadata: key, status: { initialization: { infrastructureProvisioned: true } } }
  const secret = { metadata: {}, data: { value: btoa('kubeconfig') } }
  const peek = ({ kind }: { kind: string }) =>
    (kind === Cluster.kind ? cluster : kind === Secret.kind ? secret : undefined) as unknown as KubeObject
  const context = { cache: { peek } } as unknown as ReconcileContext
  const advance = () => advanceClock(clock, 1000, { managers: () => [], stores: () => [], traffic: createTraffic() })
  await clusters.controller.reconcile(key, context)
  await advance()
  expect(clusters.connection(key)).toBeDefined()
  await clusters.controller.observe!(key, context)
  await advance()
  expect(clusters.connection(key)).toBeUndefined()
  expect(closed).toBeGreaterThan(0)
})
