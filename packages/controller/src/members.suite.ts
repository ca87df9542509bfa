/**
 * Runs several managers, called members, on one API server, for tests of leader election. Each member has its own connection, which can
 * fail, and its own clock.
 */
import { memoryStore, type Store } from '@capstan/apiserver'
import { type ApiServer, createApiServer } from '@capstan/kubernetes-kinds'
import {
  type Clock,
  ConfigMap,
  createClient,
  minutes,
  type ObjectKey,
  seconds,
  seededRandom,
  silent,
  sleep,
  type Transport,
  VirtualClock,
  withSend,
} from '@capstan/kube'
import { createTraffic, settle as settleAll, type Traffic } from '@capstan/testing'
import { afterEach, beforeEach, expect } from 'vitest'
import { type Controller, controller } from './controller.ts'
import { createManager, type Manager } from './manager.ts'
import { proceed, requeue } from './outcome.ts'

export let clock: VirtualClock
let store: Store
let server: ApiServer
let traffic: Traffic
export let members: Member[]
/** Successful patches by the members, in order. */
export let writes: { readonly by: string; readonly namespace: string | undefined; readonly at: number }[]
/** Times at which more than one member led, with the names of these members. */
let clashes: string[]

/**
 * Starts a server before each test of the calling file. After each test, stops the members and the server, and fails the test if more than
 * one member led at the same time. The hooks are registered by this function, not when this module is loaded: files that run in one
 * process load it only once.
 */
export function useMembers(): void {
  beforeEach(async () => {
    clock = new VirtualClock()
    store = memoryStore()
    traffic = createTraffic()
    server = createApiServer({ store, clock, random: seededRandom(1), log: silent })
    await server.ready
    members = []
    writes = []
    clashes = []
  })
  afterEach(async () => {
    for (const member of members) await stopMember(member)
    await server.close()
    expect(clashes).toEqual([])
  })
}

export interface Member {
  readonly name: string
  readonly manager: Manager
  /** Its connection to the API server. While it is `slow`, responses take four seconds. */
  connection: 'works' | 'loses requests' | 'loses responses' | 'slow'
  /** Number of reconciles so far. */
  reconciles: number
  /** For each write: `written` if the response reports success, otherwise the error text. */
  readonly writeResults: string[]
  /** Messages of the errors that have ended its manager. */
  readonly endErrors: string[]
  /** Simulates a crash: a dead member sends no requests, and its timers do not fire. */
  isDead: boolean
  /** Milliseconds by which its clock is ahead of the clock of the test. */
  ahead: number
  /** Simulates a suspended process: timers that become due fire when `resume` is called. */
  suspend(): void
  resume(): void
}

interface MemberOptions {
  /** Number of shards that divide the work. If absent, only the leader reconciles. */
  readonly shards?: number
  /** Called instead of a reconcile for objects that another member reconciles. */
  readonly observe?: (key: ObjectKey) => void
  /** Milliseconds by which the member's clock is ahead; default 0. */
  readonly ahead?: number
  /** Work of the leader before its first reconcile. */
  readonly prepare?: () => Promise<void>
  /** Called at the start of each reconcile, with a function that records an Event about its object. */
  readonly onReconcile?: (recordEvent: (reason: string) => void) => void
}

export const client = () => createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
/** Key of the ConfigMap that tests without shards create, and that the leader patches. */
export const beat = { namespace: 'default', name: 'beat' }

/**
 * Starts a member. Its only controller writes the member's name and the time into each ConfigMap that the member reconciles. A second after
 * a successful write, it writes again.
 */
export async function join(
  name: string,
  { ahead = 0, prepare, shards, observe, onReconcile }: MemberOptions = {},
): Promise<Member> {
  const suspendedCallbacks: (() => void)[] = []
  let isSuspended = false
  const memberClock: Clock = {
    now: () => clock.now() + member.ahead,
    elapsed: () => clock.elapsed(),
    schedule: (after, callback) =>
      clock.schedule(after, () => {
        if (member.isDead) return
        if (isSuspended) suspendedCallbacks.push(callback)
        else callback()
      }),
  }
  const noResponse = (signal?: AbortSignal) =>
    new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }))
  const inner = traffic.count(server.transport({ name, groups: ['system:masters'], agent: name }))
  const unreliable: Transport = withSend(inner, async (request, signal) => {
    if (member.isDead || member.connection === 'loses requests') return noResponse(signal)
    const response = await inner.send(request, signal)
    if (request.verb === 'patch') writes.push({ by: name, namespace: request.namespace, at: clock.now() })
    if (member.connection === 'loses responses') return noResponse(signal)
    if (member.connection === 'slow') await sleep(clock, seconds(4))
    return response
  })
  const writer: Controller = controller({
    name: 'writer',
    for: ConfigMap,
    async reconcile(key, context) {
      member.reconciles++
      onReconcile?.((reason) => context.events.event(context.cache.peek(ConfigMap, key)!, 'Normal', reason, `of ${name}`))
      try {
        const body = { data: { by: name, at: String(clock.now()) } }
        await context.client.patch(ConfigMap, key, { type: 'merge', body }, { signal: context.signal })
        member.writeResults.push('written')
      } catch (err) {
        member.writeResults.push((err as Error).message)
        return proceed()
      }
      return requeue(seconds(1), 'the next write')
    },
    ...(observe
      ? {
          observe: (key: ObjectKey) => {
            observe(key)
            return Promise.resolve(proceed())
          },
        }
      : {}),
  })
  const manager = createManager({
    client: createClient(unreliable),
    clock: memberClock,
    random: seededRandom(members.length + 7),
    log: silent,
    controllers: [writer],
    leaderElection: {
      namespace: 'default',
      name: 'the-lease',
      identity: name,
      ...(prepare ? { prepare } : {}),
      ...(shards === undefined ? {} : { shards }),
    },
  })
  const member: Member = {
    name,
    manager,
    connection: 'works',
    reconciles: 0,
    writeResults: [],
    endErrors: [],
    isDead: false,
    ahead,
    suspend: () => void (isSuspended = true),
    resume() {
      isSuspended = false
      for (const callback of suspendedCallbacks.splice(0)) callback()
    },
  }
  members.push(member)
  manager.ended.catch((err: Error) => member.endErrors.push(err.message))
  await manager.start()
  await settle()
  return member
}

export async function stopMember(member: Member): Promise<void> {
  if (member.isDead) {
    // The timers of a dead member never fire. Therefore `stop` may never resolve.
    void member.manager.stop()
    return
  }
  member.connection = 'works'
  member.resume()
  let isStopped = false
  void member.manager.stop().then(() => {
    isStopped = true
  })
  await until(() => isStopped)
}

/** Waits until no member has work that is due now, and records a clash if several members lead. */
export async function settle(): Promise<void> {
  await settleAll({
    managers: () => members.map(({ manager }) => manager).filter((manager) => manager.started),
    stores: () => [store],
    traffic,
    patience: 0,
  })
  const leaders = members.filter(({ manager, isDead }) => !isDead && manager.leads).map(({ name }) => name)
  if (leaders.length > 1) clashes.push(`${clock.now()}: ${leaders.join(' and ')}`)
}

export async function advance(ms: number): Promise<void> {
  const end = clock.now() + ms
  await settle()
  while (clock.step(end)) await settle()
}

/** Advances the clock until `done` returns true; returns the seconds that this took. */
export async function until(done: () => boolean): Promise<number> {
  const start = clock.now()
  while (!done()) {
    if (clock.now() - start > minutes(5)) throw new Error('the condition is not true after five minutes')
    await advance(100)
  }
  return (clock.now() - start) / 1000
}
