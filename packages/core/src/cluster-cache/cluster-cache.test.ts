import { Cluster } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import {
  type ApiRequest,
  type Client,
  createClient,
  type KubeObject,
  type Logger,
  messageOf,
  type ObjectKey,
  Secret,
  seconds,
  seededRandom,
  silent,
  StatusError,
  urlOf,
  VirtualClock,
} from '@capstan/kube'
import { advance as advanceClock, createTraffic } from '@capstan/testing'
import { expect, test } from 'vitest'
import { createClusterCache, type SourceOptions } from './cluster-cache.ts'

const key = { namespace: 'default', name: 'demo' }

test('closes the connection of a Cluster that the process no longer reconciles', async () => {
  let closed = 0
  const { clusters, context, advance } = await connectedCache({ onClose: () => void closed++ })
  expect(clusters.connection(key)).toBeDefined()
  await clusters.controller.observe!(key, context)
  await advance()
  expect(clusters.connection(key)).toBeUndefined()
  expect(closed).toBeGreaterThan(0)
})

// Upstream: HealthCheck requests /, and every error fails the probe.
test.each(['Forbidden', 'NotFound', 'TooManyRequests'] as const)('a probe with the response %s fails', async (reason) => {
  const requests: ApiRequest[] = []
  let rejects = false
  const { clusters, advance } = await connectedCache({
    onGet: (request) => {
      requests.push(request)
      if (rejects) throw new StatusError(reason, 'no')
    },
  })
  expect(clusters.health(key).consecutiveFailures).toBe(0)
  rejects = true
  await advance(seconds(15))
  expect(clusters.health(key).consecutiveFailures).toBe(1)
  expect([...new Set(requests.map(urlOf))]).toEqual(['/'])
})

test('caches Nodes without images and managedFields, and updates the cache by watch events', async () => {
  const node = (name: string, providerID: string, resourceVersion = '1') => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, uid: name, resourceVersion, labels: { a: 'b' }, managedFields: [{ manager: 'kubelet' }] },
    spec: { providerID },
    status: { conditions: [{ type: 'Ready', status: 'True' }], images: [{ names: ['example.com/image'] }] },
  })
  const watched = [
    { type: 'MODIFIED', object: node('listed', 'p:///changed', '2') },
    { type: 'ADDED', object: node('added', 'p:///added', '3') },
    { type: 'DELETED', object: node('deleted', 'p:///deleted', '4') },
  ]
  const { clusters } = await connectedCache({ listed: [node('listed', 'p:///listed'), node('deleted', 'p:///deleted')], watched })
  const { node: nodeOf, nodesByProviderID } = clusters.connection(key)!
  expect(['listed', 'added', 'deleted'].map(nodeOf)).toEqual([
    {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'listed', uid: 'listed', resourceVersion: '2', labels: { a: 'b' } },
      spec: { providerID: 'p:///changed' },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    },
    expect.objectContaining({ status: { conditions: [{ type: 'Ready', status: 'True' }] } }),
    undefined,
  ])
  expect(nodesByProviderID('p:///added')).toEqual([nodeOf('added')])
})

test('an error of a map function is logged, and does not affect other sources or the connection', async () => {
  const node = { metadata: { name: 'added', uid: 'added', resourceVersion: '2' }, spec: {} }
  const events: string[] = []
  const enqueued: ObjectKey[] = []
  const errors: unknown[] = []
  const { clusters } = await connectedCache({
    watched: [{ type: 'ADDED', object: node }],
    sources: [
      {
        map: () => {
          throw new Error('no keys')
        },
      },
      {
        map: (event) => {
          events.push(event.kind)
          return [event.cluster]
        },
      },
    ],
    enqueue: (enqueuedKey) => void enqueued.push(enqueuedKey),
    log: {
      ...silent,
      error: (message, { err, ...fields } = {}) => void errors.push({ message, err: messageOf(err), ...fields }),
    },
  })
  expect(clusters.connection(key)).toBeDefined()
  expect(events).toEqual(['connected', 'node'])
  expect(enqueued).toEqual([key, key])
  const error = { message: 'A predicate or map function failed for an event', err: 'no keys', Cluster: 'default/demo' }
  expect(errors).toEqual([error, { ...error, Node: 'added' }])
})

/** Returns a cluster cache that is connected to a workload cluster with these Nodes and watch events. */
async function connectedCache({
  listed = [],
  watched = [],
  onClose = () => {},
  onGet = () => {},
  sources = [],
  enqueue = () => {},
  log = silent,
}: {
  readonly listed?: readonly object[]
  readonly watched?: readonly object[]
  readonly onClose?: () => void
  readonly onGet?: (request: ApiRequest) => void
  readonly sources?: readonly SourceOptions[]
  /** Gets the keys of all sources. */
  readonly enqueue?: (key: ObjectKey) => void
  /** The logger of the controllers of all sources. */
  readonly log?: Logger
}) {
  const clock = new VirtualClock()
  const workload = (): Client =>
    createClient({
      close: onClose,
      async send(request) {
        if (request.verb === 'get') onGet(request)
        return { metadata: { resourceVersion: '1' }, items: listed }
      },
      watch: (_, signal) =>
        Promise.resolve(
          (async function* () {
            yield* watched as readonly never[]
            await new Promise((resolve) => signal.addEventListener('abort', resolve))
          })(),
        ),
    })
  const clusters = createClusterCache({ connect: () => Promise.resolve(workload()), clock, random: seededRandom(1), log: silent })
  const cluster = { metadata: key, status: { initialization: { infrastructureProvisioned: true } } }
  const secret = { metadata: {}, data: { value: btoa('kubeconfig') } }
  const peek = ({ kind }: { kind: string }) =>
    (kind === Cluster.kind ? cluster : kind === Secret.kind ? secret : undefined) as unknown as KubeObject
  const context = { cache: { peek } } as unknown as ReconcileContext
  const advance = (ms = seconds(1)) => advanceClock(clock, ms, { managers: () => [], stores: () => [], traffic: createTraffic() })
  const { signal } = new AbortController()
  for (const source of sources) clusters.source(source).start(enqueue, { cache: context.cache, signal, log, accepts: () => true })
  await clusters.controller.reconcile(key, context)
  await advance()
  return { clusters, context, advance }
}
