/** Tests managers (called members) that divide the reconciles on one API server among themselves, by shards of namespaces. */
import { ConfigMap, Lease, minutes, Namespace, seconds, seededRandom } from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import { advance, client, join, type Member, members, stopMember, settle, until, useMembers, writes } from './members.suite.ts'
import { shardLease, shardOf } from './shards.ts'

useMembers()

const shards = 6
/** Two namespaces of each shard. */
const namespaces = Array.from({ length: shards }, (_, shard) => namesIn(shard).slice(0, 2)).flat()

function namesIn(shard: number): string[] {
  return Array.from({ length: 200 }, (_, i) => `team-${i}`).filter((namespace) => shardOf({ namespace }, shards) === shard)
}

beforeEach(async () => {
  for (const name of namespaces) {
    await client().create(Namespace, { metadata: { name } })
    await client().create(ConfigMap, { metadata: { name: 'beat', namespace: name } })
  }
})

/** Advances the clock by `ms`, and returns the members that wrote to each namespace during this time. */
async function writersDuring(ms: number): Promise<Map<string, Set<string>>> {
  const from = writes.length
  await advance(ms)
  const writers = new Map(namespaces.map((name) => [name, new Set<string>()]))
  for (const { namespace, by } of writes.slice(from)) writers.get(namespace!)?.add(by)
  return writers
}

const holders = async () =>
  Promise.all(
    Array.from({ length: shards }, async (_, shard) => {
      const lease = await client().get(Lease, { namespace: 'default', name: shardLease('the-lease', shard, shards) })
      return lease.spec?.holderIdentity ?? ''
    }),
  )

/** Returns the number of shards of each holder, largest first. */
async function division(): Promise<number[]> {
  const counts = new Map<string, number>()
  for (const holder of await holders()) counts.set(holder, (counts.get(holder) ?? 0) + 1)
  return [...counts.values()].sort((a, b) => b - a)
}

/** Fails when a member writes to a namespace again after another member has written to it. */
function expectTurns(): void {
  for (const namespace of namespaces) {
    const by = writes.filter((write) => write.namespace === namespace).map((write) => write.by)
    const turns = by.filter((name, i) => name !== by[i - 1])
    expect(new Set(turns).size, `${namespace}: ${turns.join(', ')}`).toBe(turns.length)
  }
}

/**
 * Fails when a member writes to a namespace again within ten seconds although another member has written to it in the meantime. Two members
 * that reconcile a namespace at the same time write alternately, each at least every five seconds, even with a slow connection.
 */
function expectNoInterleaving(): void {
  for (const namespace of namespaces) {
    const written = writes.filter((write) => write.namespace === namespace)
    const interleaved = written.filter(({ by, at }, i) => {
      const last = written.slice(0, i).findLastIndex((write) => write.by === by)
      return last >= 0 && last < i - 1 && at - written[last]!.at < seconds(10)
    })
    expect(interleaved, namespace).toEqual([])
  }
}

async function expectEachWrittenByOne(): Promise<void> {
  for (const [namespace, by] of await writersDuring(seconds(5))) expect([namespace, by.size]).toEqual([namespace, 1])
}

test('a single process reconciles every namespace', async () => {
  await join('a', { shards })
  await advance(seconds(15))
  expect(await division()).toEqual([6])
  await expectEachWrittenByOne()
})

test.each([
  [2, [3, 3]],
  [3, [2, 2, 2]],
  [4, [2, 2, 1, 1]],
] as const)('%i processes divide the shards evenly, and each namespace has one writer', async (count, even) => {
  for (let i = 0; i < count; i++) await join(`m${i}`, { shards })
  await advance(minutes(2))
  expect(await division()).toEqual(even)
  await expectEachWrittenByOne()
  expectTurns()
})

test('a process that joins later gets shards of the other process, and no namespace waits for a Lease to expire', async () => {
  await join('a', { shards })
  await advance(seconds(20))
  await join('b', { shards })
  await advance(minutes(1))
  expect(await division()).toEqual([3, 3])
  expectTurns()
  for (const namespace of namespaces) {
    const times = writes.filter((write) => write.namespace === namespace).map(({ at }) => at)
    const lateWrites = times.filter((at, i) => i > 0 && at > times[0]! + seconds(10) && at - times[i - 1]! > seconds(6))
    expect(lateWrites, namespace).toEqual([])
  }
})

test('another process reconciles the shards of a stopped process before its Leases would expire', async () => {
  const [a] = [await join('a', { shards }), await join('b', { shards })]
  await advance(minutes(1))
  await a.manager.stop()
  const writers = await writersDuring(seconds(10))
  expect([...writers.values()].every((by) => by.has('b'))).toBe(true)
  expect(a.endErrors).toEqual([])
  expectTurns()
})

test('the other processes reconcile the shards of a killed process when its Leases have expired', async () => {
  const [a] = [await join('a', { shards }), await join('b', { shards }), await join('c', { shards })]
  await advance(minutes(2))
  a.isDead = true
  await advance(seconds(30))
  expect(await division()).toEqual([3, 3])
  await expectEachWrittenByOne()
  expectTurns()
})

describe.each(['loses requests', 'loses responses', 'is suspended'] as const)(
  'a process that %s for longer than the duration of its Leases',
  (how) => {
    test('does not write to objects of shards that other processes acquired, and acquires shards again later', async () => {
      const [a] = [await join('a', { shards }), await join('b', { shards })]
      await advance(minutes(1))
      if (how === 'is suspended') a.suspend()
      else a.connection = how
      await advance(seconds(40))
      expect(await division()).toEqual([6])
      const writesBefore = writes.length
      if (how === 'is suspended') a.resume()
      a.connection = 'works'
      await settle()
      expect(writes.slice(writesBefore).filter(({ by }) => by === 'a')).toEqual([])
      await advance(minutes(1))
      expect(await division()).toEqual([3, 3])
      await expectEachWrittenByOne()
    })
  },
)

test('cluster-scoped objects belong to shard 0, and each namespace always to the same shard', () => {
  expect(shardOf({}, shards)).toBe(0)
  expect(shardOf({ namespace: 'team-1' }, shards)).toBe(shardOf({ namespace: 'team-1' }, shards))
  expect(new Set(namespaces.map((namespace) => shardOf({ namespace }, shards))).size).toBe(shards)
})

test('a controller with observe receives keys of objects that other processes reconcile, and does not write these objects', async () => {
  const foreignNamespaces = new Set<string>()
  await join('a', { shards })
  await advance(seconds(20))
  await join('b', { shards, observe: ({ namespace }) => void foreignNamespaces.add(namespace!) })
  await advance(seconds(5))
  expect([...foreignNamespaces].sort()).toEqual([...namespaces].sort())
  await advance(minutes(1))
  foreignNamespaces.clear()
  const writers = await writersDuring(seconds(3))
  expect(foreignNamespaces.size).toBe(namespaces.length / 2)
  for (const [namespace, by] of writers) expect(by.has('b')).toBe(!foreignNamespaces.has(namespace))
})

test('a controller with observe receives the keys in the shards that its process has lost', async () => {
  const observedNamespaces = new Set<string>()
  const a = await join('a', { shards, observe: ({ namespace }) => void observedNamespaces.add(namespace!) })
  await advance(seconds(20))
  observedNamespaces.clear()
  a.connection = 'loses requests'
  await advance(seconds(40))
  expect([...observedNamespaces].sort()).toEqual([...namespaces].sort())
})

describe('managers that divide the work differently', () => {
  const writesBy = (member: Member) => writes.filter(({ by }) => by === member.name)

  test('a manager without shards runs alone until it stops, while managers with shards wait', async () => {
    const a = await join('a')
    await advance(seconds(5))
    const b = await join('b', { shards })
    await advance(minutes(1))
    expect(writesBy(b)).toEqual([])
    await a.manager.stop()
    await advance(seconds(20))
    expect(await division()).toEqual([6])
    expectTurns()
  })

  test('a manager without shards waits until the Leases of managers with shards have expired', async () => {
    const [a, b] = [await join('a', { shards }), await join('b', { shards })]
    await advance(minutes(1))
    const c = await join('c')
    await advance(minutes(1))
    expect(writesBy(c)).toEqual([])
    const [first, second] = (await holders())[0] === 'a' ? [a, b] : [b, a]
    // The second manager could acquire shard 0, but cannot reach the server during this time.
    first.isDead = true
    second.connection = 'loses requests'
    await until(() => c.manager.leads)
    second.connection = 'works'
    await advance(seconds(40))
    expect(second.endErrors.join()).toMatch(/^$|c holds Lease the-lease and does not share the work of 6 shards/)
    expect(writesBy(c).length).toBeGreaterThan(0)
    expectTurns()
  })

  test('managers with different numbers of shards do not run at the same time', async () => {
    const a = await join('a', { shards })
    await advance(seconds(20))
    const b = await join('b', { shards: 4 })
    await advance(minutes(1))
    expect(writesBy(b)).toEqual([])
    await a.manager.stop()
    await advance(seconds(40))
    expect(writesBy(b).length).toBeGreaterThan(0)
    expectTurns()
  })
})

test.each([1, 2, 3])('no two processes reconcile a namespace at once despite random failures (seed %i)', async (seed) => {
  const random = seededRandom(seed)
  for (const name of ['a', 'b', 'c']) await join(name, { shards, ahead: Math.round((random.next() - 0.5) * 100_000) })
  let started = 3
  for (let step = 0; step < 40; step++) {
    const member = members[Math.floor(random.next() * members.length)]!
    const chance = random.next()
    if (chance < 0.4)
      member.connection = (['works', 'loses requests', 'loses responses', 'slow'] as const)[Math.floor(random.next() * 4)]!
    else if (chance < 0.5) member.suspend()
    else if (chance < 0.7) member.resume()
    else if (member.isDead || chance < 0.75) {
      members.splice(members.indexOf(member), 1)
      await stopMember(member)
      await join(`m${started++}`, { shards, ahead: Math.round((random.next() - 0.5) * 100_000) })
    } else if (chance > 0.93) member.isDead = true
    await advance(Math.floor(random.next() * 12_000))
    const holding = namespaces.map((namespace) =>
      members.filter(({ manager, isDead }) => !isDead && manager.holds({ namespace, name: 'beat' })).map(({ name }) => name),
    )
    expect(holding.filter((names) => names.length > 1)).toEqual([])
  }
  for (const member of members) {
    member.connection = 'works'
    member.resume()
  }
  await join('last', { shards })
  await advance(minutes(2))
  await expectEachWrittenByOne()
  expectNoInterleaving()
})
