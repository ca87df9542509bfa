/** Several managers over one API server, each with a line to it and a clock of its own, which can fail. */
import { type ApiServer, createApiServer, memoryStore, type Store } from '@capstan/apiserver'
import {
  type Clock,
  ConfigMap,
  createClient,
  Event,
  hours,
  Lease,
  minutes,
  seconds,
  seededRandom,
  silent,
  sleep,
  type Transport,
  VirtualClock,
} from '@capstan/kube'
import { createTraffic, settle as settleAll, type Traffic } from '@capstan/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Controller, controller } from './controller.ts'
import { diagnostics } from './diagnostics.ts'
import { createManager, type Manager } from './manager.ts'
import { proceed, requeue } from './outcome.ts'

let clock: VirtualClock
let store: Store
let server: ApiServer
let traffic: Traffic
let members: Member[]
/** Moments at which more than one thought that it leads. */
let clashes: string[]

beforeEach(async () => {
  clock = new VirtualClock()
  store = memoryStore()
  traffic = createTraffic()
  server = createApiServer({ store, clock, random: seededRandom(1), log: silent })
  await server.ready
  members = []
  clashes = []
})
afterEach(async () => {
  for (const member of members) await retire(member)
  await server.close()
  expect(clashes).toEqual([])
})

interface Member {
  readonly name: string
  readonly manager: Manager
  /** `cut`: nothing arrives; `deaf`: requests arrive, answers do not; `slow`: answers take four seconds. */
  line: 'up' | 'cut' | 'deaf' | 'slow'
  /** Passes so far. */
  passes: number
  /** What it wrote, or could not. */
  readonly wrote: string[]
  readonly lost: string[]
  isDead: boolean
  /** How far its clock is ahead of the others'. */
  ahead: number
  /** Its process stands still while time goes on. */
  freeze(): void
  thaw(): void
}

interface MemberOptions {
  readonly ahead?: number
  readonly prepare?: () => Promise<void>
}

const client = () => createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
const beat = { namespace: 'default', name: 'beat' }

/** Starts a manager whose only controller writes its name into a ConfigMap each second. */
async function join(name: string, { ahead = 0, prepare }: MemberOptions = {}): Promise<Member> {
  const held: (() => void)[] = []
  let isFrozen = false
  const own: Clock = {
    now: () => clock.now() + member.ahead,
    schedule: (after, callback) =>
      clock.schedule(after, () => {
        if (member.isDead) return
        if (isFrozen) held.push(callback)
        else callback()
      }),
  }
  const silence = (signal?: AbortSignal) =>
    new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }))
  const inner = traffic.count(server.transport({ name, groups: ['system:masters'], agent: name }))
  const line: Transport = {
    close: () => inner.close(),
    watch: (request, signal) => inner.watch(request, signal),
    async send(request, signal) {
      if (member.isDead || member.line === 'cut') return silence(signal)
      const answer = await inner.send(request, signal)
      if (member.line === 'deaf') return silence(signal)
      if (member.line === 'slow') await sleep(clock, seconds(4))
      return answer
    },
  }
  const writer: Controller = controller({
    name: 'writer',
    for: ConfigMap,
    async reconcile(key, context) {
      member.passes++
      try {
        await context.client.patch(ConfigMap, key, { type: 'merge', body: { data: { by: name, at: String(clock.now()) } } })
        member.wrote.push('yes')
      } catch (err) {
        member.wrote.push((err as Error).message)
        return proceed()
      }
      return requeue(seconds(1), 'beats')
    },
  })
  const manager = createManager({
    client: createClient(line),
    clock: own,
    random: seededRandom(members.length + 7),
    log: silent,
    controllers: [writer],
    leaderElection: { namespace: 'default', name: 'the-lease', identity: name, ...(prepare ? { prepare } : {}) },
  })
  const member: Member = {
    name,
    manager,
    line: 'up',
    passes: 0,
    wrote: [],
    lost: [],
    isDead: false,
    ahead,
    freeze: () => void (isFrozen = true),
    thaw() {
      isFrozen = false
      for (const callback of held.splice(0)) callback()
    },
  }
  members.push(member)
  manager.ended.catch((err: Error) => member.lost.push(err.message))
  await manager.start()
  await settle()
  return member
}

async function retire(member: Member): Promise<void> {
  member.isDead = false
  member.line = 'up'
  member.thaw()
  let isStopped = false
  void member.manager.stop().then(() => {
    isStopped = true
  })
  await until(() => isStopped)
}

async function settle(): Promise<void> {
  await settleAll({
    managers: () => members.map(({ manager }) => manager).filter((one) => one.started),
    stores: () => [store],
    traffic,
    patience: 0,
  })
  const leaders = members.filter(({ manager, isDead }) => !isDead && manager.leads).map(({ name }) => name)
  if (leaders.length > 1) clashes.push(`${clock.now()}: ${leaders.join(' and ')}`)
}

async function advance(ms: number): Promise<void> {
  const end = clock.now() + ms
  await settle()
  while (clock.step(end)) await settle()
}

/** Moves the clock until `done`, and says how many seconds that took. */
async function until(done: () => boolean): Promise<number> {
  const start = clock.now()
  while (!done()) {
    if (clock.now() - start > minutes(5)) throw new Error('it did not happen')
    await advance(100)
  }
  return (clock.now() - start) / 1000
}

const lease = async () => (await client().get(Lease, { namespace: 'default', name: 'the-lease' })).spec!

test('one leads, the other waits with its informers filled, and writes nothing', async () => {
  await client().create(ConfigMap, { metadata: beat })
  const [a, b] = [await join('a'), await join('b')]
  await advance(seconds(30))
  expect([a.manager.leads, b.manager.leads]).toEqual([true, false])
  expect(a.passes).toBeGreaterThan(25)
  expect(b.passes).toBe(0)
  expect(b.manager.cache.peek(ConfigMap, beat)?.data).toMatchObject({ by: 'a' })
  expect((await diagnostics(b.manager, '/readyz')).status).toBe(200)
  expect(await (await diagnostics(b.manager, '/metrics')).text()).toContain('leader_election_master_status{name="the-lease"} 0')
  expect(await (await diagnostics(a.manager, '/metrics')).text()).toContain('leader_election_master_status{name="the-lease"} 1')
  const { renewTime, ...rest } = await lease()
  expect(rest).toEqual({
    holderIdentity: 'a',
    leaseDurationSeconds: 15,
    acquireTime: '2026-01-01T00:00:00.000000Z',
    leaseTransitions: 0,
  })
  expect(clock.now() - Date.parse(renewTime!)).toBeLessThanOrEqual(seconds(2))
  const events = (await client().list(Event)).items.map(({ reason, message, involvedObject: { kind } }) => [
    kind,
    reason,
    message,
  ])
  expect(events).toEqual([['Lease', 'LeaderElection', 'a became leader']])
})

test('one that is stopped gives the Lease back, and the next one has it at its next attempt', async () => {
  await client().create(ConfigMap, { metadata: beat })
  const [a, b] = [await join('a'), await join('b')]
  await advance(seconds(10))
  await a.manager.stop()
  expect(a.lost).toEqual([])
  expect(await lease()).toMatchObject({ leaseDurationSeconds: 1, leaseTransitions: 0 })
  expect((await lease()).holderIdentity).toBeUndefined()
  expect(await until(() => b.manager.leads)).toBeLessThanOrEqual(2 * 2.2)
  expect(await lease()).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 })
  await advance(seconds(2))
  expect(b.passes).toBeGreaterThan(0)
  const { passes } = a
  await advance(seconds(10))
  expect(a.passes).toBe(passes)
})

test('one that dies holds the others up for the duration of its Lease, not longer', async () => {
  const [a, b] = [await join('a'), await join('b')]
  await advance(seconds(10))
  a.isDead = true
  const took = await until(() => b.manager.leads)
  expect(took).toBeGreaterThanOrEqual(15 - 2)
  expect(took).toBeLessThanOrEqual(15 + 2 * 4.4)
})

describe.each(['cut', 'deaf'] as const)('one whose line is %s', (how) => {
  test('has stopped before another one begins, and says why', async () => {
    await client().create(ConfigMap, { metadata: beat })
    const [a, b] = [await join('a'), await join('b')]
    await advance(seconds(10))
    a.line = how
    expect(await until(() => !a.manager.leads)).toBeLessThanOrEqual(10)
    await settle()
    expect(a.lost).toEqual(['Leader election lost: the lease could not be renewed for 10s'])
    expect(a.manager.started).toBe(false)
    expect(b.manager.leads).toBe(false)
    await until(() => b.manager.leads)
    const { passes } = a
    await advance(seconds(30))
    expect(a.passes).toBe(passes)
  })

  test('goes on when it is mended in time', async () => {
    const [a, b] = [await join('a'), await join('b')]
    await advance(seconds(10))
    a.line = how
    await advance(seconds(6))
    a.line = 'up'
    await advance(minutes(1))
    expect([a.manager.leads, b.manager.leads, a.lost]).toEqual([true, false, []])
    expect(await lease()).toMatchObject({ holderIdentity: 'a', leaseTransitions: 0 })
  })
})

test('one that hears late counts from when it asked: it goes on, and another one never begins beside it', async () => {
  const [a, b] = [await join('a'), await join('b')]
  await advance(seconds(10))
  a.line = 'slow'
  await advance(minutes(5))
  expect([a.manager.leads, b.manager.leads]).toEqual([true, false])
  // The last answer comes four seconds late, and then none: those four seconds do not count for it.
  const { renewTime } = await lease()
  a.line = 'cut'
  await until(() => !a.manager.leads)
  expect(clock.now() - Date.parse(renewTime!)).toBeLessThanOrEqual(seconds(10 + 2 + 4))
  await until(() => b.manager.leads)
})

test.each([
  ['ahead', hours(1)],
  ['behind', -hours(1)],
])('a clock that is far %s neither takes the Lease from its holder nor leaves it for ever', async (_, ahead) => {
  const [a, b] = [await join('a'), await join('b', { ahead })]
  await advance(minutes(2))
  expect([a.manager.leads, b.manager.leads]).toEqual([true, false])
  a.isDead = true
  expect(await until(() => b.manager.leads)).toBeLessThanOrEqual(15 + 2 * 4.4)
})

test.each([
  ['forward', hours(1)],
  ['back', -hours(1)],
])('a clock that is set %s makes nobody begin early or go on for too long', async (_, by) => {
  const [a, b] = [await join('a'), await join('b')]
  await advance(seconds(10.5))
  a.ahead += by
  b.ahead += by
  await advance(minutes(1))
  expect([a.manager.leads, b.manager.leads, a.lost]).toEqual([true, false, []])
  a.line = 'cut'
  await advance(seconds(1))
  a.ahead += by
  b.ahead += by
  expect(await until(() => a.lost.length > 0)).toBeLessThanOrEqual(10)
  await until(() => b.manager.leads)
})

test('one that stood still for too long writes nothing when it wakes up', async () => {
  await client().create(ConfigMap, { metadata: beat })
  const [a, b] = [await join('a'), await join('b')]
  await advance(seconds(10.5))
  const before = a.wrote.length
  a.freeze()
  await until(() => b.manager.leads)
  expect(a.manager.leads).toBe(false)
  a.thaw()
  await settle()
  expect(a.wrote.slice(before).filter((what) => what === 'yes')).toEqual([])
  expect(a.lost).toHaveLength(1)
})

test('one that finds another name in its Lease stops at once', async () => {
  const [a] = [await join('a')]
  await advance(seconds(10))
  await client().patch(
    Lease,
    { namespace: 'default', name: 'the-lease' },
    { type: 'merge', body: { spec: { holderIdentity: 'c' } } },
  )
  expect(await until(() => a.lost.length > 0)).toBeLessThanOrEqual(2)
  expect(a.lost).toEqual(['Leader election lost: c holds the lease'])
})

test('what only the leader may do is done by the leader, before its first pass', async () => {
  await client().create(ConfigMap, { metadata: beat })
  const done: string[] = []
  const preparing = Promise.withResolvers<void>()
  const a = await join('a', {
    prepare: async () => {
      await preparing.promise
      done.push(`a after ${a.passes} passes`)
    },
  })
  const b = await join('b', { prepare: async () => void done.push('b') })
  await advance(seconds(5))
  preparing.resolve()
  await advance(seconds(5))
  expect(done).toEqual(['a after 0 passes'])
  expect(a.passes).toBeGreaterThan(0)
  await a.manager.stop()
  await until(() => b.manager.leads)
  await settle()
  expect(done).toEqual(['a after 0 passes', 'b'])
})

test('a leader that cannot prepare lets the next one try', async () => {
  const a = await join('a', { prepare: () => Promise.reject(new Error('no room')) })
  await settle()
  expect(a.lost).toEqual(['no room'])
  await a.manager.stop()
  const b = await join('b')
  expect(await until(() => b.manager.leads)).toBeLessThanOrEqual(4.4)
})

test.each([1, 2, 3, 4])(
  'whatever happens to three of them, two never lead at once, and in the end one does (seed %i)',
  async (seed) => {
    const random = seededRandom(seed)
    await client().create(ConfigMap, { metadata: beat })
    for (const name of ['a', 'b', 'c']) await join(name, { ahead: Math.round((random.next() - 0.5) * 100_000) })
    for (let step = 0; step < 60; step++) {
      const one = members[Math.floor(random.next() * members.length)]!
      const chance = random.next()
      if (chance < 0.4) one.line = (['up', 'cut', 'deaf', 'slow'] as const)[Math.floor(random.next() * 4)]!
      else if (chance < 0.5) one.freeze()
      else if (chance < 0.7) one.thaw()
      else if (one.lost.length > 0 || one.isDead) {
        members.splice(members.indexOf(one), 1)
        await retire(one)
        await join(`${one.name}'`, { ahead: Math.round((random.next() - 0.5) * 100_000) })
      } else if (chance > 0.95) one.isDead = true
      await advance(Math.floor(random.next() * 12_000))
    }
    for (const member of members) {
      member.line = 'up'
      member.thaw()
    }
    const last = await join('last')
    await until(() => members.some(({ manager, isDead }) => !isDead && manager.leads))
    expect(last.lost).toEqual([])
  },
)
