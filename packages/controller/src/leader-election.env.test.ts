/** Tests several managers that compete for a Lease on one API server. */
import { ConfigMap, Event, hours, Lease, minutes, seconds, seededRandom, silent } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { diagnostics } from './diagnostics.ts'
import { LeaderElection } from './leader-election.ts'
import { advance, beat, client, clock, join, members, stopMember, settle, until, useMembers } from './members.suite.ts'

useMembers()

const lease = async () => (await client().get(Lease, { namespace: 'default', name: 'the-lease' })).spec!

test('a candidate that does not lead syncs its informers and writes nothing', async () => {
  await client().create(ConfigMap, { metadata: beat })
  const [a, b] = [await join('a'), await join('b')]
  await advance(seconds(30))
  expect([a.manager.leads, b.manager.leads]).toEqual([true, false])
  expect(a.reconciles).toBeGreaterThan(25)
  expect(b.reconciles).toBe(0)
  expect(b.manager.cache.peek(ConfigMap, beat)?.data).toMatchObject({ by: 'a' })
  expect((await diagnostics(b.manager, '/readyz')).status).toBe(200)
  expect(await (await diagnostics(b.manager, '/metrics')).text()).toContain('leader_election_master_status{name="the-lease"} 0')
  expect(await (await diagnostics(a.manager, '/metrics')).text()).toContain('leader_election_master_status{name="the-lease"} 1')
  const { renewTime, ...spec } = await lease()
  expect(spec).toEqual({
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

test('a stopped leader releases the Lease, and another candidate acquires it at its next attempt', async () => {
  await client().create(ConfigMap, { metadata: beat })
  const [a, b] = [await join('a'), await join('b')]
  await advance(seconds(10))
  await a.manager.stop()
  expect(a.endErrors).toEqual([])
  expect(await lease()).toMatchObject({ leaseDurationSeconds: 1, leaseTransitions: 0 })
  expect((await lease()).holderIdentity).toBeUndefined()
  expect(await until(() => b.manager.leads)).toBeLessThanOrEqual(2 * 2.2)
  expect(await lease()).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 })
  await advance(seconds(2))
  expect(b.reconciles).toBeGreaterThan(0)
  const { reconciles } = a
  await advance(seconds(10))
  expect(a.reconciles).toBe(reconciles)
})

describe('Events of a stopping leader', () => {
  /** Stops a leader whose reconcile has recorded three Events. Returns the reasons of those that the API server received. */
  async function reasonsAfterStop(connection: 'works' | 'slow') {
    const stopped = Promise.withResolvers<void>()
    const a = await join('a', {
      onReconcile(recordEvent) {
        for (const reason of ['First', 'Second', 'Third']) recordEvent(reason)
        a.connection = connection
        a.manager.stop().then(stopped.resolve, stopped.reject)
        expect(a.manager.leads).toBe(false)
      },
    })
    await client().create(ConfigMap, { metadata: beat })
    let isStopped = false
    void stopped.promise.then(() => (isStopped = true))
    await until(() => isStopped)
    expect(a.writeResults).toEqual(['Cannot patch configmaps: this manager does not lead'])
    return (await client().list(Event)).items.filter(({ message }) => message === 'of a').map(({ reason }) => reason)
  }

  test('are sent, and the Lease is released', async () => {
    expect(await reasonsAfterStop('works')).toEqual(expect.arrayContaining(['First', 'Second', 'Third']))
    expect((await lease()).holderIdentity).toBeUndefined()
  })

  test('that are not sent within one second are dropped, and the Lease is released', async () => {
    expect(await reasonsAfterStop('slow')).not.toContain('Third')
    expect((await lease()).holderIdentity).toBeUndefined()
  })
})

test('the Lease of a crashed leader is acquired after its duration', async () => {
  const [a, b] = [await join('a'), await join('b')]
  await advance(seconds(10))
  a.isDead = true
  const secondsWaited = await until(() => b.manager.leads)
  expect(secondsWaited).toBeGreaterThanOrEqual(15 - 2)
  expect(secondsWaited).toBeLessThanOrEqual(15 + 2 * 4.4)
})

describe.each(['loses requests', 'loses responses'] as const)('a leader whose connection %s', (how) => {
  test('stops before another member starts to lead, and reports the reason', async () => {
    await client().create(ConfigMap, { metadata: beat })
    const [a, b] = [await join('a'), await join('b')]
    await advance(seconds(10))
    a.connection = how
    expect(await until(() => !a.manager.leads)).toBeLessThanOrEqual(10)
    await settle()
    expect(a.endErrors).toEqual(['Leader election lost: the lease could not be renewed for 10s'])
    expect(a.manager.started).toBe(false)
    expect(b.manager.leads).toBe(false)
    await until(() => b.manager.leads)
    const { reconciles } = a
    await advance(seconds(30))
    expect(a.reconciles).toBe(reconciles)
  })

  test('continues when its connection is restored before the deadline', async () => {
    const [a, b] = [await join('a'), await join('b')]
    await advance(seconds(10))
    a.connection = how
    await advance(seconds(6))
    a.connection = 'works'
    await advance(minutes(1))
    expect([a.manager.leads, b.manager.leads, a.endErrors]).toEqual([true, false, []])
    expect(await lease()).toMatchObject({ holderIdentity: 'a', leaseTransitions: 0 })
  })
})

test('the deadline of a leader with late responses begins with its requests, so that two members do not lead at once', async () => {
  const [a, b] = [await join('a'), await join('b')]
  await advance(seconds(10))
  a.connection = 'slow'
  await advance(minutes(5))
  expect([a.manager.leads, b.manager.leads]).toEqual([true, false])
  // The last response arrives four seconds after its request. The deadline begins with this request.
  const { renewTime } = await lease()
  a.connection = 'loses requests'
  await until(() => !a.manager.leads)
  expect(clock.now() - Date.parse(renewTime!)).toBeLessThanOrEqual(seconds(10 + 2 + 4))
  await until(() => b.manager.leads)
})

test.each([
  ['ahead', hours(1)],
  ['behind', -hours(1)],
])(
  'a candidate whose clock is far %s does not take the Lease from its holder, but acquires it after its expiry',
  async (_, ahead) => {
    const [a, b] = [await join('a'), await join('b', { ahead })]
    await advance(minutes(2))
    expect([a.manager.leads, b.manager.leads]).toEqual([true, false])
    a.isDead = true
    expect(await until(() => b.manager.leads)).toBeLessThanOrEqual(15 + 2 * 4.4)
  },
)

test.each([
  ['forward', hours(1)],
  ['back', -hours(1)],
])('when the clocks are set %s, no leader starts too early or ends too late', async (_, by) => {
  const [a, b] = [await join('a'), await join('b')]
  await advance(seconds(10.5))
  a.ahead += by
  b.ahead += by
  await advance(minutes(1))
  expect([a.manager.leads, b.manager.leads, a.endErrors]).toEqual([true, false, []])
  a.connection = 'loses requests'
  await advance(seconds(1))
  a.ahead += by
  b.ahead += by
  expect(await until(() => a.endErrors.length > 0)).toBeLessThanOrEqual(10)
  await until(() => b.manager.leads)
})

test('a leader that was suspended for too long does not write when it resumes', async () => {
  await client().create(ConfigMap, { metadata: beat })
  const [a, b] = [await join('a'), await join('b')]
  await advance(seconds(10.5))
  const writesBefore = a.writeResults.length
  a.suspend()
  await until(() => b.manager.leads)
  expect(a.manager.leads).toBe(false)
  a.resume()
  await settle()
  expect(a.writeResults.slice(writesBefore).filter((result) => result === 'written')).toEqual([])
  expect(a.endErrors).toHaveLength(1)
})

test('a leader whose Lease has another holder stops at its next renewal', async () => {
  const [a] = [await join('a')]
  await advance(seconds(10))
  await client().patch(
    Lease,
    { namespace: 'default', name: 'the-lease' },
    { type: 'merge', body: { spec: { holderIdentity: 'c' } } },
  )
  expect(await until(() => a.endErrors.length > 0)).toBeLessThanOrEqual(2)
  expect(a.endErrors).toEqual(['Leader election lost: c holds the lease'])
})

test('a leader whose Lease is deleted, and that may not acquire it again, stops at its next renewal', async () => {
  const options = { namespace: 'default', name: 'shard-0', identity: 'a' }
  let mayAcquire = true
  const dependencies = { client: client(), clock, random: seededRandom(1), log: silent }
  const election = new LeaderElection({ ...options, mayAcquire: () => mayAcquire }, dependencies)
  const { signal } = new AbortController()
  await election.acquire(signal)
  let reason: string | undefined
  void election.keep(signal).then((text) => (reason = text))
  mayAcquire = false
  await client().delete(Lease, { namespace: 'default', name: 'shard-0' })
  await advance(seconds(4))
  expect(reason).toBe('the lease was deleted or released')
})

test('the leader runs its preparation before its first reconcile', async () => {
  await client().create(ConfigMap, { metadata: beat })
  const preparations: string[] = []
  const preparing = Promise.withResolvers<void>()
  const a = await join('a', {
    prepare: async () => {
      await preparing.promise
      preparations.push(`a after ${a.reconciles} reconciles`)
    },
  })
  const b = await join('b', { prepare: async () => void preparations.push('b') })
  await advance(seconds(5))
  preparing.resolve()
  await advance(seconds(5))
  expect(preparations).toEqual(['a after 0 reconciles'])
  expect(a.reconciles).toBeGreaterThan(0)
  await a.manager.stop()
  await until(() => b.manager.leads)
  await settle()
  expect(preparations).toEqual(['a after 0 reconciles', 'b'])
})

test('a leader whose preparation fails ends with its error, and releases the Lease when it is stopped', async () => {
  const a = await join('a', { prepare: () => Promise.reject(new Error('no room')) })
  await settle()
  expect(a.endErrors).toEqual(['no room'])
  await a.manager.stop()
  const b = await join('b')
  expect(await until(() => b.manager.leads)).toBeLessThanOrEqual(4.4)
})

test.each([1, 2, 3, 4])(
  'at most one of three managers leads during random failures, and one leads afterwards (seed %i)',
  async (seed) => {
    const random = seededRandom(seed)
    await client().create(ConfigMap, { metadata: beat })
    for (const name of ['a', 'b', 'c']) await join(name, { ahead: Math.round((random.next() - 0.5) * 100_000) })
    for (let step = 0; step < 60; step++) {
      const member = members[Math.floor(random.next() * members.length)]!
      const chance = random.next()
      if (chance < 0.4)
        member.connection = (['works', 'loses requests', 'loses responses', 'slow'] as const)[Math.floor(random.next() * 4)]!
      else if (chance < 0.5) member.suspend()
      else if (chance < 0.7) member.resume()
      else if (member.endErrors.length > 0 || member.isDead) {
        members.splice(members.indexOf(member), 1)
        await stopMember(member)
        await join(`${member.name}'`, { ahead: Math.round((random.next() - 0.5) * 100_000) })
      } else if (chance > 0.95) member.isDead = true
      await advance(Math.floor(random.next() * 12_000))
    }
    for (const member of members) {
      member.connection = 'works'
      member.resume()
    }
    const last = await join('last')
    await until(() => members.some(({ manager, isDead }) => !isDead && manager.leads))
    expect(last.endErrors).toEqual([])
  },
)
