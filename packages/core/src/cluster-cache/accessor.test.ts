import {
  type Client,
  createClient,
  hours,
  minutes,
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
import { type AccessorEvent, ClusterAccessor, failsForLonger, MissingKubeconfig } from './accessor.ts'

let clock: VirtualClock
let reported: string[]
let server: {
  /** Times of the attempts to connect, in milliseconds since the start of the clock. */
  connects: number[]
  probes: number
  closed: number
  connect: 'responds' | 'refuses' | 'hangs'
  probe: 'responds' | 'fails' | 'hangs' | 'rejects'
}
let push: (event: WatchEvent<Node>) => void

beforeEach(() => {
  clock = new VirtualClock()
  reported = []
  server = { connects: [], probes: 0, closed: 0, connect: 'responds', probe: 'responds' }
})

const advance = (ms: number) => advanceClock(clock, ms, { managers: () => [], stores: () => [], traffic: createTraffic() })
const never = () => new Promise<never>(() => {})

/** Returns a client of a workload cluster with one Node. The watch of Nodes delivers the events given to `push`. */
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

const anAccessor = (report: (event: AccessorEvent) => void = ({ kind }) => reported.push(kind)) =>
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
    report,
  )

describe('a connection', () => {
  test('opens as soon as there is a kubeconfig', async () => {
    const accessor = anAccessor()
    await advance(seconds(60))
    expect(server.connects).toEqual([])
    accessor.setKubeconfig('a')
    await advance(0)
    expect(reported).toEqual(['connected'])
    expect(accessor.connection?.nodesByProviderID('dev:///m1').map(({ metadata }) => metadata.name)).toEqual(['node-1'])
    expect(accessor.health).toEqual({ lastProbe: clock.now(), lastProbeSuccess: clock.now(), consecutiveFailures: 0 })
  })

  test('is retried with a backoff of at most about ten seconds', async () => {
    server.connect = 'refuses'
    const accessor = anAccessor()
    accessor.setKubeconfig('a')
    await advance(seconds(60))
    const gaps = server.connects.slice(1).map((at, index) => at - server.connects[index]!)
    expect(gaps[0]).toBeLessThan(300)
    expect(Math.max(...gaps)).toBeLessThanOrEqual(12_500)
    expect(gaps.at(-1)).toBeGreaterThan(7_000)
    expect(server.connects.length).toBeGreaterThan(8)

    server.connect = 'responds'
    await advance(seconds(13))
    expect(accessor.connection).toBeDefined()
    expect(accessor.health.consecutiveFailures).toBe(0)
  })

  test('that keeps failing counts as one failure per thirty seconds', async () => {
    server.connect = 'refuses'
    const accessor = anAccessor()
    accessor.setKubeconfig('a')
    const failures: number[] = []
    for (let minute = 0; minute < 3; minute++) {
      await advance(seconds(20))
      failures.push(accessor.health.consecutiveFailures)
      await advance(seconds(40))
    }
    expect(failures).toEqual([1, 3, 5])
    server.connect = 'responds'
    await advance(seconds(13))
    expect(accessor.health.consecutiveFailures).toBe(0)
  })

  test('that keeps failing counts as the same number of failures when the clock is set back', async () => {
    server.connect = 'refuses'
    const accessor = anAccessor()
    accessor.setKubeconfig('a')
    await advance(seconds(20))
    clock.shift(-hours(1))
    await advance(minutes(2))
    expect(accessor.health.consecutiveFailures).toBe(5)
  })

  test('to an unresponsive server times out and is retried', async () => {
    server.connect = 'hangs'
    const accessor = anAccessor()
    accessor.setKubeconfig('a')
    await advance(seconds(25))
    expect(server.connects.length).toBe(3)
    expect(accessor.connection).toBeUndefined()
  })

  test('is reopened when another kubeconfig is set, but not when the same one is set again', async () => {
    const accessor = anAccessor()
    accessor.setKubeconfig('a')
    await advance(0)
    accessor.setKubeconfig('a')
    await advance(0)
    expect(server.connects.length).toBe(1)
    accessor.setKubeconfig('b')
    await advance(0)
    expect([server.connects.length, reported]).toEqual([2, ['connected', 'disconnected', 'connected']])
    expect(server.closed).toBeGreaterThan(0)
  })

  test('is closed by `close`, after which no probe is sent', async () => {
    const accessor = anAccessor()
    accessor.setKubeconfig('a')
    await advance(0)
    accessor.close()
    const { probes } = server
    await advance(seconds(60))
    expect([accessor.connection, reported, server.probes]).toEqual([undefined, ['connected', 'disconnected'], probes])
  })
})

test('a cluster without kubeconfig counts one failure for every thirty seconds, until there is a kubeconfig', async () => {
  const accessor = anAccessor()
  accessor.setKubeconfig(MissingKubeconfig)
  await advance(seconds(164))
  expect([accessor.health.consecutiveFailures, accessor.health.lastProbeSuccess, server.connects]).toEqual([6, undefined, []])
  accessor.setKubeconfig('a')
  await advance(0)
  expect([accessor.connection !== undefined, accessor.health.consecutiveFailures]).toEqual([true, 0])
})

describe('a probe', () => {
  test('is sent every ten seconds while there are no watch events', async () => {
    const accessor = anAccessor()
    accessor.setKubeconfig('a')
    await advance(0)
    server.probes = 0
    await advance(seconds(60))
    expect(server.probes).toBe(6)
    expect(reported).toEqual(['connected'])
    expect(accessor.health.lastProbeSuccess).toBe(clock.now())
  })

  test('is sent every ten seconds when the clock is set back', async () => {
    const accessor = anAccessor()
    accessor.setKubeconfig('a')
    await advance(0)
    server.probes = 0
    clock.shift(-hours(1))
    await advance(seconds(60))
    expect(server.probes).toBe(6)
    expect(accessor.health.lastProbeSuccess).toBe(clock.now())
  })

  test('has the same age after the clock is set back', async () => {
    const accessor = anAccessor()
    accessor.setKubeconfig('a')
    await advance(seconds(4))
    clock.shift(-hours(1))
    expect(accessor.health.lastProbeSuccess).toBe(clock.now() - seconds(4))
    server.probe = 'fails'
    await advance(minutes(6))
    expect(failsForLonger(accessor.health, minutes(5), { now: clock.now() })).toBe(true)
  })

  test('is skipped while the watch of Nodes delivers events', async () => {
    const accessor = anAccessor()
    accessor.setKubeconfig('a')
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

  test('closes the connection after five consecutive failures; a success resets the count', async () => {
    const accessor = anAccessor()
    accessor.setKubeconfig('a')
    await advance(0)
    server.probe = 'fails'
    await advance(seconds(45))
    expect([accessor.connection === undefined, accessor.health.consecutiveFailures]).toEqual([false, 4])
    server.probe = 'responds'
    await advance(seconds(10))
    expect([accessor.health.consecutiveFailures, reported.at(-1)]).toEqual([0, 'probe-recovered'])
    server.probe = 'fails'
    await advance(seconds(52))
    expect(accessor.connection).toBeUndefined()
    expect(reported).toContain('disconnected')
  })

  test('times out after five seconds', async () => {
    const accessor = anAccessor()
    accessor.setKubeconfig('a')
    await advance(0)
    server.probe = 'hangs'
    await advance(seconds(14))
    expect(accessor.health.consecutiveFailures).toBe(0)
    await advance(seconds(1))
    expect(accessor.health.consecutiveFailures).toBe(1)
  })

  test('that fails authentication makes the accessor reconnect at once', async () => {
    const accessor = anAccessor()
    accessor.setKubeconfig('a')
    await advance(0)
    server.probe = 'rejects'
    await advance(seconds(10))
    server.probe = 'responds'
    await advance(seconds(1))
    expect(accessor.connection).toBeDefined()
    expect(reported.filter((kind) => kind === 'connected').length).toBe(2)
  })
})

test('an accessor reports changed Nodes with their previous state', async () => {
  const nodes: string[] = []
  const accessor = anAccessor((event) => {
    if (event.kind === 'node')
      nodes.push(`${event.previous?.spec?.unschedulable ?? false} -> ${event.node.spec?.unschedulable ?? false}`)
  })
  accessor.setKubeconfig('a')
  await advance(0)
  push({ type: 'MODIFIED', object: aNode({ metadata: { resourceVersion: '2' }, spec: { unschedulable: true } }) })
  await advance(0)
  expect(nodes).toEqual(['false -> true'])
})
