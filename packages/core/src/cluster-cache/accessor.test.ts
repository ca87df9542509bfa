import {
  type Client,
  createClient,
  type Node,
  seededRandom,
  seconds,
  silent,
  StatusError,
  VirtualClock,
  type WatchEvent,
} from '@capstan/kube'
import { aNode, advance as advanceClock, createTraffic } from '@capstan/testing'
import { beforeEach, describe, expect, test } from 'vitest'
import { type AccessorEvent, ClusterAccessor } from './accessor.ts'

let clock: VirtualClock
let told: string[]
let server: {
  connects: number[]
  probes: number
  closed: number
  connect: 'answers' | 'refuses' | 'hangs'
  probe: 'answers' | 'fails' | 'hangs' | 'rejects'
}
let push: (event: WatchEvent<Node>) => void

beforeEach(() => {
  clock = new VirtualClock()
  told = []
  server = { connects: [], probes: 0, closed: 0, connect: 'answers', probe: 'answers' }
})

const advance = (ms: number) => advanceClock(clock, ms, { managers: () => [], stores: () => [], traffic: createTraffic() })
const never = () => new Promise<never>(() => {})

/** A workload cluster with one Node, whose watch delivers the events given to `push`. */
const aClient = (): Client =>
  createClient({
    close: () => void server.closed++,
    send: async ({ verb }) => {
      if (verb !== 'list') throw new Error('not needed')
      return { metadata: { resourceVersion: '1' }, items: [aNode()] }
    },
    watch: async (_, signal) => {
      const events: WatchEvent<Node>[] = []
      let wake = () => {}
      push = (event) => {
        events.push(event)
        wake()
      }
      signal.addEventListener('abort', () => wake())
      return (async function* () {
        while (!signal.aborted) {
          yield* events.splice(0)
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      })()
    },
  })

const anAccessor = (tell: (event: AccessorEvent) => void = ({ kind }) => told.push(kind)) =>
  new ClusterAccessor(
    { namespace: 'default', name: 'demo' },
    {
      clock,
      random: seededRandom(1),
      log: silent,
      connect: async () => {
        server.connects.push(clock.now() - Date.UTC(2026, 0, 1))
        if (server.connect === 'hangs') return never()
        if (server.connect === 'refuses') throw new StatusError('ServiceUnavailable', 'connect ECONNREFUSED')
        return aClient()
      },
      probe: async () => {
        server.probes++
        if (server.probe === 'hangs') return never()
        if (server.probe === 'fails') throw new StatusError('ServiceUnavailable', 'connect ECONNREFUSED')
        if (server.probe === 'rejects') throw new StatusError('Unauthorized', 'Unauthorized')
      },
    },
    tell,
  )

describe('a connection', () => {
  test('is made at once when there is a kubeconfig, and not before', async () => {
    const accessor = anAccessor()
    await advance(seconds(60))
    expect(server.connects).toEqual([])
    accessor.want('a')
    await advance(0)
    expect(told).toEqual(['connected'])
    expect(accessor.connection?.nodesByProviderID('dev:///m1').map(({ metadata }) => metadata.name)).toEqual(['node-1'])
    expect(accessor.health).toEqual({ lastProbe: clock.now(), lastProbeSuccess: clock.now(), consecutiveFailures: 0 })
  })

  test('is tried again soon, then ever more slowly, and never more rarely than every ten seconds or so', async () => {
    server.connect = 'refuses'
    const accessor = anAccessor()
    accessor.want('a')
    await advance(seconds(60))
    const gaps = server.connects.slice(1).map((at, index) => at - server.connects[index]!)
    expect(gaps[0]).toBeLessThan(300)
    expect(Math.max(...gaps)).toBeLessThanOrEqual(12_500)
    expect(gaps.at(-1)).toBeGreaterThan(7_000)
    expect(accessor.health.consecutiveFailures).toBe(server.connects.length)

    server.connect = 'answers'
    await advance(seconds(13))
    expect(accessor.connection).toBeDefined()
    expect(accessor.health.consecutiveFailures).toBe(0)
  })

  test('to a server that never answers is given up in time, and tried again', async () => {
    server.connect = 'hangs'
    const accessor = anAccessor()
    accessor.want('a')
    await advance(seconds(25))
    expect(server.connects.length).toBe(3)
    expect(accessor.connection).toBeUndefined()
  })

  test('is reopened when the kubeconfig changes, and only then', async () => {
    const accessor = anAccessor()
    accessor.want('a')
    await advance(0)
    accessor.want('a')
    await advance(0)
    expect(server.connects.length).toBe(1)
    accessor.want('b')
    await advance(0)
    expect([server.connects.length, told]).toEqual([2, ['connected', 'disconnected', 'connected']])
    expect(server.closed).toBeGreaterThan(0)
  })

  test('ends when there is no kubeconfig', async () => {
    const accessor = anAccessor()
    accessor.want('a')
    await advance(0)
    accessor.close()
    const { probes } = server
    await advance(seconds(60))
    expect([accessor.connection, told, server.probes]).toEqual([undefined, ['connected', 'disconnected'], probes])
  })
})

describe('a probe', () => {
  test('asks every ten seconds while nothing else shows life', async () => {
    const accessor = anAccessor()
    accessor.want('a')
    await advance(0)
    server.probes = 0
    await advance(seconds(60))
    expect(server.probes).toBe(6)
    expect(told).toEqual(['connected'])
    expect(accessor.health.lastProbeSuccess).toBe(clock.now())
  })

  test('is spared while the watch of Nodes shows life', async () => {
    const accessor = anAccessor()
    accessor.want('a')
    await advance(0)
    server.probes = 0
    for (let i = 0; i < 12; i++) {
      await advance(seconds(5))
      push({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(10 + i) } } as Node })
      await advance(0)
    }
    expect(server.probes).toBe(0)
    expect(accessor.health.lastProbeSuccess).toBe(clock.now())
  })

  test('that fails five times in a row ends the connection; one success forgives', async () => {
    const accessor = anAccessor()
    accessor.want('a')
    await advance(0)
    server.probe = 'fails'
    await advance(seconds(45))
    expect([accessor.connection === undefined, accessor.health.consecutiveFailures]).toEqual([false, 4])
    server.probe = 'answers'
    await advance(seconds(10))
    expect([accessor.health.consecutiveFailures, told.at(-1)]).toEqual([0, 'probe-recovered'])
    server.probe = 'fails'
    await advance(seconds(52))
    expect(accessor.connection).toBeUndefined()
    expect(told).toContain('disconnected')
  })

  test('that gets no answer fails in five seconds', async () => {
    const accessor = anAccessor()
    accessor.want('a')
    await advance(0)
    server.probe = 'hangs'
    await advance(seconds(14))
    expect(accessor.health.consecutiveFailures).toBe(0)
    await advance(seconds(1))
    expect(accessor.health.consecutiveFailures).toBe(1)
  })

  test('reconnects at once after an authentication failure', async () => {
    const accessor = anAccessor()
    accessor.want('a')
    await advance(0)
    server.probe = 'rejects'
    await advance(seconds(10))
    server.probe = 'answers'
    await advance(seconds(1))
    expect(accessor.connection).toBeDefined()
    expect(told.filter((kind) => kind === 'connected').length).toBe(2)
  })
})

test('reports changed Nodes with their previous state', async () => {
  const nodes: string[] = []
  const accessor = anAccessor((event) => {
    if (event.kind === 'node')
      nodes.push(`${event.previous?.spec?.unschedulable ?? false} -> ${event.node.spec?.unschedulable ?? false}`)
  })
  accessor.want('a')
  await advance(0)
  push({ type: 'MODIFIED', object: aNode({ metadata: { resourceVersion: '2' }, spec: { unschedulable: true } }) })
  await advance(0)
  expect(nodes).toEqual(['false -> true'])
})
