/** A server with a custom resource, for tests. */
import { setImmediate } from 'node:timers/promises'
import {
  type Client,
  createClient,
  customResourceDefinition,
  defineKind,
  type KubeObject,
  type ObjectOf,
  s,
  seededRandom,
  StatusError,
  VirtualClock,
  type WatchEvent,
} from '@capstan/kube'
import { type ApiServer, type ApiServerOptions, createApiServer } from './server.ts'

export const Widget = defineKind({
  group: 'shop.example.com',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
  spec: s.object({
    replicas: s.int32({ minimum: 0, maximum: 100 }).default(1),
    color: s.string().optional(),
    free: s.unknownObject().optional(),
    tags: s.list(s.string()).listSet().optional(),
  }),
  status: s.object({ phase: s.string().optional(), replicas: s.int32().optional() }),
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
})
export type Widget = ObjectOf<typeof Widget>

export const namespace = 'default'
export const at = (name: string) => ({ namespace, name })

export interface TestServer {
  readonly server: ApiServer
  readonly client: Client
  readonly clock: VirtualClock
}

export async function testServer(options: Partial<ApiServerOptions> = {}): Promise<TestServer> {
  const clock = new VirtualClock()
  const server = createApiServer({
    clock,
    random: seededRandom(1),
    customResources: [customResourceDefinition(Widget)],
    ...options,
  })
  await server.ready
  return { server, client: createClient(server.transport({ agent: 'test' })), clock }
}

export const aWidget = (name: string, spec: Partial<Widget['spec']> = {}, metadata: Partial<KubeObject['metadata']> = {}) => ({
  metadata: { name, namespace, ...metadata },
  spec: spec as Widget['spec'],
})

/** Waits five turns of the event loop, so that pending work that does not wait for the clock ends. */
export async function quiet(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await setImmediate()
}

/** Returns the error of a rejected request as `code reason: message`, or `accepted`. */
export async function rejection(request: Promise<unknown>): Promise<string> {
  try {
    await request
  } catch (err) {
    if (err instanceof StatusError) return `${err.code} ${err.reason}: ${err.message}`
    throw err
  }
  return 'accepted'
}

/** Collects the events of a watch until it ends. `texts` returns each event as `TYPE name`. */
export function collected(events: AsyncIterable<WatchEvent>) {
  const received: WatchEvent[] = []
  const state = {
    seen: received,
    ended: false,
    texts: () => received.map(({ type, object }) => `${type} ${object.metadata.name ?? ''}`.trim()),
  }
  void (async () => {
    for await (const event of events) received.push(event)
    state.ended = true
  })()
  return state
}
