import type { TestEnv } from '@capstan/testing'
import { testEnv } from '@capstan/testing'
import type { Client, KubeObject, LogFields, Logger, ObjectOf, Transport } from '@capstan/kube'
import {
  createClient,
  conditionTypes,
  controllerReference,
  defineKind,
  eventLoopYielder,
  draft,
  isReason,
  keyOf,
  messageOf,
  minutes,
  orAbsent,
  s,
  seconds,
  setConditions,
  silent,
  StatusError,
  VirtualClock,
  withSend,
} from '@capstan/kube'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { commitChanges } from './commit.ts'
import { type Cache, controller, watches } from './controller.ts'
import { proceed, requeue, wait } from './outcome.ts'
import { ensureFinalizer, reconcileObject } from './reconcile-object.ts'

/**
 * A kind whose controller creates as many children as the spec states. Stale reads and concurrent writes can occur in this
 * controller.
 */
const Parent = defineKind({
  group: 'test.dev',
  version: 'v1',
  kind: 'Parent',
  plural: 'parents',
  scope: 'Namespaced',
  spec: s.object({ children: s.int32() }),
  status: s.object({
    children: s.int32().optional(),
    conditions: s.conditions(),
    deprecated: s
      .object({
        v1beta1: s.object({
          children: s.int32().optional(),
          conditions: s
            .list(
              s.object({
                type: s.string(),
                status: s.string(),
                reason: s.string().optional(),
                lastTransitionTime: s.timestamp(),
              }),
            )
            .optional(),
        }),
      })
      .optional(),
  }),
})
type Parent = ObjectOf<typeof Parent>
const Child = defineKind({
  group: 'test.dev',
  version: 'v1',
  kind: 'Child',
  plural: 'children',
  scope: 'Namespaced',
  spec: s.object({ of: s.string() }),
})
const { Ready } = conditionTypes({ Ready: ['Ready', 'Scaling'] })

const createParentController = (reconciles: string[] = []) =>
  controller({
    name: 'parent',
    for: Parent,
    owns: [Child],
    async reconcile(key, { cache, client, clock }) {
      const before = cache.peek(Parent, key)
      reconciles.push(`${(clock.now() - Date.UTC(2026, 0, 1)) / 1000}`)
      if (!before) return proceed()
      const { items } = await cache.list(Child, { namespace: key.namespace!, labelSelector: `parent=${key.name}` })
      for (let i = items.length; i < before.spec.children; i++) {
        await client.create(Child, {
          metadata: {
            generateName: `${key.name}-`,
            namespace: key.namespace!,
            labels: { parent: key.name },
            ownerReferences: [
              { apiVersion: 'test.dev/v1', kind: 'Parent', name: key.name, uid: before.metadata.uid, controller: true },
            ],
          },
          spec: { of: key.name },
        })
      }
      const after = draft(before)
      const complete = items.length === before.spec.children
      after.status = {
        ...after.status,
        children: items.length,
        conditions: setConditions(
          after.status?.conditions,
          [complete ? Ready.true('Ready') : Ready.false('Scaling', `${items.length} children`)],
          { now: clock.now(), generation: before.metadata.generation ?? 0 },
        ),
      }
      await commitChanges(client, Parent, before, after, { conditions: ['Ready'] })
      return complete ? proceed() : wait('children')
    },
  })

const aParent = (name: string, children: number) => ({ metadata: { name, namespace: 'default' }, spec: { children } })
const kinds = [Parent, Child] as never[]
let env: TestEnv
afterEach(() => env.close())

/** Returns a client that records verb and subresource of each request. */
const recordRequests = ({ transport }: Client, requests: string[]): Client =>
  createClient(
    withSend(transport, (request, signal) => {
      requests.push([request.verb, request.subresource].filter(Boolean).join(' '))
      return transport.send(request, signal)
    }),
  )

const conflict = new StatusError('Conflict', 'the object has been modified')

describe('a controller', () => {
  test('creates exactly the wanted objects, then becomes idle', async () => {
    const reconciles: string[] = []
    env = await testEnv({ kinds, controllers: [createParentController(reconciles)] })
    await env.client.create(Parent, aParent('a', 3))
    await env.settle()
    expect((await env.client.list(Child)).items).toHaveLength(3)
    expect(await env.client.get(Parent, { namespace: 'default', name: 'a' })).toMatchObject({
      status: { children: 3, conditions: [{ type: 'Ready', status: 'True', reason: 'Ready' }] },
    })
    const countsBefore = [reconciles.length, env.store.revision]
    await env.advance(minutes(30))
    expect([reconciles.length, env.store.revision]).toEqual(countsBefore)
  })

  test('creates nothing twice with a stale cache', async () => {
    env = await testEnv({ kinds, controllers: [createParentController()] })
    await env.client.create(Parent, aParent('a', 3))
    // There is no `settle` here, so that the second event arrives before the cache contains the children of the first reconcile.
    await env.client.patch(
      Parent,
      { namespace: 'default', name: 'a' },
      { type: 'merge', body: { metadata: { labels: { x: 'y' } } } },
    )
    await env.settle()
    expect((await env.client.list(Child)).items).toHaveLength(3)
  })

  test('replaces a deleted child', async () => {
    env = await testEnv({ kinds, controllers: [createParentController()] })
    await env.client.create(Parent, aParent('a', 2))
    await env.settle()
    const [first] = (await env.client.list(Child)).items
    await env.client.delete(Child, { namespace: 'default', name: first!.metadata.name })
    await env.settle()
    expect((await env.client.list(Child)).items).toHaveLength(2)
  })

  test('retries failures with growing delays until a reconcile succeeds', async () => {
    let failing = true
    const reconciles: string[] = []
    const between = (transport: Transport): Transport =>
      withSend(transport, (request, signal) => {
        if (failing && request.verb === 'create' && request.plural === 'children')
          return Promise.reject(new StatusError('ServiceUnavailable', 'out for lunch'))
        return transport.send(request, signal)
      })
    env = await testEnv({ kinds, controllers: [createParentController(reconciles)], between })
    await env.client.create(Parent, aParent('a', 1))
    await env.advance(seconds(1))
    expect(reconciles.slice(0, 5)).toEqual(['0', '0.005', '0.015', '0.035', '0.075'])
    failing = false
    await env.advance(seconds(10))
    expect((await env.client.list(Child)).items).toHaveLength(1)
  })

  describe('that creates and deletes an object and then fails', () => {
    const reconciles: number[] = []
    const failing = controller({
      name: 'failing',
      for: Parent,
      owns: [Child],
      async reconcile(key, { cache, client, clock }) {
        const parent = cache.peek(Parent, key)!
        reconciles.push(clock.now())
        const owner = { apiVersion: 'test.dev/v1', kind: 'Parent', name: key.name, uid: parent.metadata.uid, controller: true }
        const metadata = { name: 'x', namespace: key.namespace!, ownerReferences: [owner] }
        await client.create(Child, { metadata, spec: { of: key.name } })
        await client.patch(Child, { namespace: key.namespace!, name: 'x' }, { type: 'merge', body: { spec: { of: 'b' } } })
        await client.delete(Child, { namespace: key.namespace!, name: 'x' })
        throw new Error('no quota')
      },
    })
    beforeEach(async () => {
      reconciles.length = 0
      env = await testEnv({ kinds, controllers: [failing] })
      await env.client.create(Parent, aParent('a', 1))
      await env.advance(minutes(10))
    })

    test('waits for its backoff although its own changes cause events', () => expect(reconciles.length).toBeLessThan(20))

    test('runs at once when another client creates an owned object', async () => {
      const reconcilesBefore = reconciles.length
      const { uid } = (await env.client.get(Parent, { namespace: 'default', name: 'a' })).metadata
      const owner = { apiVersion: 'test.dev/v1', kind: 'Parent', name: 'a', uid, controller: true }
      await env.client.create(Child, {
        metadata: { name: 'y', namespace: 'default', ownerReferences: [owner] },
        spec: { of: 'a' },
      })
      await env.settle()
      expect(reconciles.length).toBe(reconcilesBefore + 1)
    })
  })

  test("reports its queue, workers and reconciles in controller-runtime's metrics", async () => {
    env = await testEnv({ kinds, controllers: [createParentController([])] })
    await env.client.create(Parent, aParent('a', 1))
    await env.advance(seconds(1))
    const text = await env.manager.metrics.registry.metrics()
    const labels = 'name="parent",controller="parent"'
    expect(text).toMatch(new RegExp(`workqueue_adds_total\\{${labels}\\} [1-9]`))
    expect(text).toMatch(new RegExp(`workqueue_work_duration_seconds_count\\{${labels}\\} [1-9]`))
    expect(text).toContain(`workqueue_depth{${labels},priority="0"} 0`)
    expect(text).toContain('controller_runtime_max_concurrent_reconciles{controller="parent"} 10')
    expect(text).toContain('controller_runtime_active_workers{controller="parent"} 0')
    expect(text).toMatch(/controller_runtime_reconcile_time_seconds_bucket\{le="0.15",controller="parent"\} [1-9]/)
  })

  test('logs that the API server rejected a status, even when the reconcile ignores the error', async () => {
    const errors: { message: string; err: string; controller: unknown }[] = []
    const logger = (bound: LogFields): Logger => ({
      ...silent,
      error: (message, { err } = {}) => void errors.push({ message, err: messageOf(err), controller: bound['controller'] }),
      child: (fields) => logger({ ...bound, ...fields }),
    })
    const careless = controller({
      name: 'careless',
      for: Parent,
      async reconcile(key, { client }) {
        const body = { status: { children: 'many' } }
        await client.patch(Parent, key, { type: 'merge', body }, { subresource: 'status' }).catch(() => {})
        return proceed()
      },
    })
    env = await testEnv({ kinds, controllers: [careless], log: logger({}) })
    await env.client.create(Parent, aParent('a', 0))
    await env.advance(seconds(1))
    expect(errors).toEqual([
      {
        message: 'Status rejected by the API server',
        err: expect.stringContaining('"a" is invalid: status.children'),
        controller: 'careless',
      },
    ])
  })

  test.each<[string, unknown, boolean]>([
    ['a conflict', conflict, false],
    ['an error whose cause is a conflict', new Error('error of a step: conflict', { cause: conflict }), false],
    ['several conflicts', new AggregateError([conflict, new Error('step: conflict', { cause: conflict })], 'two'), false],
    ['a conflict and another failure', new AggregateError([conflict, new Error('out of order')], 'two'), true],
    ['another failure', new Error('out of order', { cause: new StatusError('NotFound', 'gone') }), true],
  ])('logs an error unless all causes are conflicts: %s', async (_, failure, isError) => {
    const errors: string[] = []
    const log: Logger = { ...silent, error: (message) => void errors.push(message), child: () => log }
    let reconciles = 0
    const failing = controller({
      name: 'failing',
      for: Parent,
      reconcile: () => (reconciles++ === 0 ? Promise.reject(failure) : Promise.resolve(proceed())),
    })
    env = await testEnv({ kinds, controllers: [failing], log })
    await env.client.create(Parent, aParent('a', 0))
    await env.advance(seconds(1))
    expect(reconciles).toBe(2)
    expect(errors).toEqual(isError ? ['Reconciler error'] : [])
  })

  test('logs an error of a map function, and receives later events', async () => {
    const errors: unknown[] = []
    const logger = (bound: LogFields): Logger => ({
      ...silent,
      error: (message, { err, ...fields } = {}) => void errors.push({ message, err: messageOf(err), ...bound, ...fields }),
      child: (fields) => logger({ ...bound, ...fields }),
    })
    const reconciles: string[] = []
    const mapping = controller({
      name: 'mapping',
      for: Parent,
      watches: [
        watches(Child, ({ metadata, spec }) => {
          if (spec.of === '') throw new Error('no parent')
          return [{ namespace: metadata.namespace!, name: spec.of }]
        }),
      ],
      reconcile: ({ name }) => {
        reconciles.push(name)
        return Promise.resolve(proceed())
      },
    })
    env = await testEnv({ kinds, controllers: [mapping], log: logger({}) })
    const key = { namespace: 'default', name: 'c' }
    await env.client.create(Child, { metadata: key, spec: { of: '' } })
    await env.client.patch(Child, key, { type: 'merge', body: { spec: { of: 'p' } } })
    await env.settle()
    expect(reconciles).toEqual(['p'])
    const error = {
      message: 'A predicate or map function failed for an event',
      err: 'no parent',
      controller: 'mapping',
      Child: 'default/c',
    }
    // One error for the new object, one for the previous state of the changed object.
    expect(errors).toEqual([error, error])
  })

  test('runs again after a requeue delay', async () => {
    const reconcileTimes: number[] = []
    const alarm = controller({
      name: 'alarm',
      for: Parent,
      reconcile: (_, { clock }) => {
        reconcileTimes.push((clock.now() - Date.UTC(2026, 0, 1)) / 1000)
        return Promise.resolve(reconcileTimes.length < 4 ? requeue(minutes(5), 'five more minutes') : proceed())
      },
    })
    env = await testEnv({ kinds, controllers: [alarm] })
    await env.client.create(Parent, aParent('a', 0))
    await env.advance(minutes(60))
    expect(reconcileTimes).toEqual([0, 300, 600, 900])
  })

  test('reconciles the old and the new parent when the map function returns another parent for a changed child', async () => {
    const reconciledNames: string[] = []
    const recorder = controller({
      name: 'recorder',
      for: Parent,
      watches: [
        watches(Child, (child: KubeObject & { spec: { of: string } }) => [{ namespace: 'default', name: child.spec.of }]),
      ],
      reconcile: (key) => {
        reconciledNames.push(key.name)
        return Promise.resolve(proceed())
      },
    })
    env = await testEnv({ kinds, controllers: [recorder] })
    await env.client.create(Child, { metadata: { name: 'c', namespace: 'default' }, spec: { of: 'a' } })
    await env.settle()
    await env.client.patch(Child, { namespace: 'default', name: 'c' }, { type: 'merge', body: { spec: { of: 'b' } } })
    await env.settle()
    expect(reconciledNames).toEqual(['a', 'a', 'b'])
  })
})

describe('for a kind in `aggregates`,', () => {
  /**
   * Starts a controller whose reconciles take 100 ms, and creates a Parent with a child. Returns the times of later reconciles in seconds, and
   * functions that change or delete the child.
   */
  async function slowParents() {
    const reconciles: number[] = []
    const slow = controller({
      name: 'parent',
      for: Parent,
      owns: [Child],
      aggregates: [Child],
      async reconcile(_, { clock }) {
        reconciles.push((clock.now() - Date.UTC(2026, 0, 1)) / 1000)
        await new Promise<void>((resolve) => void clock.schedule(100, resolve))
        return proceed()
      },
    })
    env = await testEnv({ kinds, controllers: [slow], patience: 30 })
    const parent = await env.client.create(Parent, aParent('a', 0))
    const child = await env.client.create(Child, {
      metadata: {
        name: 'c',
        namespace: 'default',
        ownerReferences: [controllerReference(parent, Parent)],
        finalizers: ['test.dev/keep'],
      },
      spec: { of: 'a' },
    })
    await env.advance(seconds(10))
    reconciles.length = 0
    const change = (of: string) => env.client.patch(Child, keyOf(child), { type: 'merge', body: { spec: { of } } })
    return { reconciles, change, remove: () => env.client.delete(Child, keyOf(child)) }
  }

  test('several successive changes of an owned object cause one reconcile at once, and one after a pause', async () => {
    const { reconciles, change } = await slowParents()
    for (let i = 0; i < 10; i++) {
      await change(`${i}`)
      await env.advance(40)
    }
    await env.advance(seconds(1))
    expect(reconciles).toEqual([10, 10.5])
  })

  test('the deletion of an owned object causes a reconcile without a pause', async () => {
    const { reconciles, change, remove } = await slowParents()
    await change('1')
    await env.advance(150)
    await change('2')
    await remove()
    await env.advance(seconds(1))
    expect(reconciles.slice(0, 2)).toEqual([10, 10.15])
  })
})

/** The parts of a reconciler of Parents that is never paused and reads no other object. */
const neverPaused = {
  kind: Parent,
  related: () => undefined,
  paused: () => Ready.false('Ready'),
  scope: (object: Parent) => object,
}

test('the error of a phase is logged together with the error of the patch of the status', async () => {
  const errors: string[] = []
  const log: Logger = { ...silent, error: (_, fields) => void errors.push(messageOf(fields?.['err'])), child: () => log }
  const failing = controller({
    name: 'failing',
    for: Parent,
    reconcile: (key, io) =>
      reconcileObject(key, io, {
        ...neverPaused,
        phases: () => [
          () => {
            throw new Error('no quota')
          },
        ],
        status(object) {
          object.status = { children: 1 }
          return proceed()
        },
        conditions: [],
        order: [],
      }),
  })
  const between = (transport: Transport): Transport =>
    withSend(transport, (request, signal) =>
      request.verb === 'patch'
        ? Promise.reject(new StatusError('Forbidden', 'denied by a policy'))
        : transport.send(request, signal),
    )
  env = await testEnv({ kinds, controllers: [failing], between, log })
  await env.client.create(Parent, aParent('a', 1))
  await env.settle()
  expect(errors).toContain('Cannot reconcile Parent default/a: no quota; denied by a policy')
})

describe('changes of status fields that are not significant', () => {
  const key = { namespace: 'default', name: 'a' }

  /**
   * Starts a controller whose writes take `duration` milliseconds. The label `text` of an object is the message of its condition; only the
   * number of children is significant.
   */
  async function start(duration: number) {
    const written: string[] = []
    const reporter = controller({
      name: 'parent',
      for: Parent,
      reconcile: (key, io) =>
        reconcileObject(key, io, {
          ...neverPaused,
          phases: () => [],
          status(object, { clock }) {
            const condition = Ready.true('Ready', object.metadata.labels?.['text'] ?? '')
            const conditions = setConditions(object.status?.conditions, [condition], {
              now: clock.now(),
              generation: undefined,
              order: [],
            })
            object.status = { children: object.spec.children, conditions }
            return proceed()
          },
          significantFields: ({ status }) => status?.children,
          conditions: ['Ready'],
          order: [],
          observesGeneration: false,
        }),
    })
    const clock = new VirtualClock()
    const between = (transport: Transport): Transport =>
      withSend(transport, async (request, signal) => {
        if (request.verb !== 'patch') return transport.send(request, signal)
        await new Promise<void>((resolve) => void clock.schedule(duration, resolve))
        const response = (await transport.send(request, signal)) as Parent
        written.push(`${response.status?.children} ${response.status?.conditions?.[0]?.message}`)
        return response
      })
    env = await testEnv({ kinds, controllers: [reporter], clock, between, patience: 30 })
    await env.client.create(Parent, { ...aParent('a', 1), metadata: { ...key, labels: { text: 'first' } } })
    await env.advance(seconds(2))
    const label = (text: string) => env.client.patch(Parent, key, { type: 'merge', body: { metadata: { labels: { text } } } })
    return { written, label }
  }

  test('are written once, after ten times the duration of a write', async () => {
    const { written, label } = await start(10)
    for (const text of ['second', 'third', 'fourth']) {
      await label(text)
      await env.advance(25)
    }
    expect(written).toEqual(['1 first'])
    await env.advance(40)
    expect(written).toEqual(['1 first', '1 fourth'])
  })

  test('are written at once together with a significant change', async () => {
    const { written, label } = await start(10)
    await label('second')
    await env.client.patch(Parent, key, { type: 'merge', body: { spec: { children: 2 } } })
    await env.advance(10)
    expect(written).toEqual(['1 first', '2 second'])
    await env.advance(seconds(2))
    expect(written).toHaveLength(2)
  })

  test('are written at once when writes are fast', async () => {
    const { written, label } = await start(1)
    await label('second')
    await env.advance(1)
    expect(written).toEqual(['1 first', '1 second'])
  })

  test('are written after the pause even while further changes arrive', async () => {
    const { written, label } = await start(10)
    for (let i = 1; i <= 10; i++) {
      await label(`${i}`)
      await env.advance(20)
    }
    expect(written.slice(1)).toHaveLength(1)
    await env.advance(seconds(1))
    expect(written.at(-1)).toBe('1 10')
  })
})

describe('commitChanges', () => {
  const key = { namespace: 'default', name: 'a' }
  const withCondition = (parent: Parent, type: string, reason: string): Parent => {
    const changed = draft(parent)
    const condition = { type, status: 'True', reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' } as const
    changed.status = {
      ...changed.status,
      conditions: [...(changed.status?.conditions ?? []).filter((existing) => existing.type !== type), condition],
    }
    return changed
  }
  const reasons = async (client: Client) =>
    (await client.get(Parent, key)).status?.conditions?.map(({ type, reason }) => `${type}=${reason}`)

  test('keeps concurrent conditions of other writers, and overwrites its own', async () => {
    env = await testEnv({ kinds })
    const before = await env.client.create(Parent, aParent('a', 0))
    await commitChanges(env.client, Parent, before, withCondition(before, 'Theirs', 'Foreign'), { conditions: ['Theirs'] })
    await commitChanges(env.client, Parent, before, withCondition(before, 'Ours', 'First'), { conditions: ['Ours'] })
    await commitChanges(env.client, Parent, before, withCondition(before, 'Ours', 'Second'), { conditions: ['Ours'] })
    expect(await reasons(env.client)).toEqual(['Ours=Second', 'Theirs=Foreign'])
  })

  test('fails with a conflict when another writer has changed the same unowned condition in another way', async () => {
    env = await testEnv({ kinds })
    const before = await env.client.create(Parent, aParent('a', 0))
    const first = await commitChanges(env.client, Parent, before, withCondition(before, 'Shared', 'First'), { conditions: [] })
    const without = draft(first)
    without.status!.conditions = []
    const commit = (after: Parent, base: Parent) =>
      commitChanges(env.client, Parent, base, after, { conditions: [] }).then(
        () => 'written',
        (err: unknown) => (isReason(err, 'Conflict') ? 'conflict' : err),
      )
    await commit(withCondition(first, 'Shared', 'Theirs'), first)
    expect([
      await commit(withCondition(before, 'Shared', 'Ours'), before),
      await commit(withCondition(first, 'Shared', 'Ours'), first),
      await commit(without, first),
      await commit(withCondition(first, 'Shared', 'Theirs'), first),
      await commit(withCondition(first, 'Other', 'Ours'), first),
    ]).toEqual(['conflict', 'conflict', 'conflict', 'written', 'written'])
    expect(await reasons(env.client)).toEqual(['Shared=Theirs', 'Other=Ours'])
    await env.client.patch(Parent, key, { type: 'merge', body: { status: { conditions: [] } } }, { subresource: 'status' })
    expect(await commit(withCondition(first, 'Shared', 'Ours'), first)).toBe('conflict')
    expect(await commit(without, first)).toBe('written')
  })

  test('keeps the stored time of an unowned condition when another writer has set the same condition', async () => {
    env = await testEnv({ kinds })
    const before = await env.client.create(Parent, aParent('a', 0))
    await commitChanges(env.client, Parent, before, withCondition(before, 'Shared', 'Same'), { conditions: [] })
    const later = withCondition(before, 'Shared', 'Same')
    later.status!.conditions![0] = { ...later.status!.conditions![0]!, lastTransitionTime: '2026-01-01T01:00:00Z' }
    const { status } = await commitChanges(env.client, Parent, before, later, { conditions: [] })
    expect(status?.conditions?.[0]?.lastTransitionTime).toBe('2026-01-01T00:00:00Z')
  })

  test('keeps concurrent v1beta1 conditions of other writers, and writes the whole status in one patch', async () => {
    env = await testEnv({ kinds })
    const before = await env.client.create(Parent, aParent('a', 0))
    const withLegacy = (type: string, reason: string, children: number): Parent => {
      const changed = withCondition(before, type, reason)
      const condition = { type, status: 'True', reason, lastTransitionTime: '2026-01-01T00:00:00Z' }
      changed.status!.deprecated = { v1beta1: { children, conditions: [condition] } }
      return changed
    }
    const options = (type: string) => ({ conditions: [type], legacyConditions: [type] })
    await commitChanges(env.client, Parent, before, withLegacy('Theirs', 'Foreign', 1), options('Theirs'))
    const { revision } = env.store
    const committed = await commitChanges(env.client, Parent, before, withLegacy('Ours', 'First', 2), options('Ours'))
    expect(env.store.revision).toBe(revision + 1)
    expect(await reasons(env.client)).toEqual(['Ours=First', 'Theirs=Foreign'])
    expect(committed.status?.deprecated).toMatchObject({
      v1beta1: { children: 2, conditions: [{ type: 'Ours' }, { type: 'Theirs' }] },
    })

    const later = draft(committed)
    later.status!.deprecated!.v1beta1.children = 3
    const counted = await commitChanges(env.client, Parent, committed, later, options('Ours'))
    expect(counted.status?.deprecated).toMatchObject({
      v1beta1: { children: 3, conditions: [{ type: 'Ours' }, { type: 'Theirs' }] },
    })
  })

  test('keeps the conditions of v1beta1 when it removes the last other field of v1beta1', async () => {
    env = await testEnv({ kinds })
    const created = await env.client.create(Parent, aParent('a', 0))
    const legacyConditions = ['Ready']
    const changed = draft(created)
    const condition = { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }
    changed.status = { deprecated: { v1beta1: { children: 1, conditions: [condition] } } }
    const before = await commitChanges(env.client, Parent, created, changed, { conditions: [], legacyConditions })
    for (const status of ['True', 'False']) {
      const after = draft(before)
      after.status!.deprecated = { v1beta1: { conditions: [{ ...condition, status }] } }
      const { status: committed } = await commitChanges(env.client, Parent, before, after, { conditions: [], legacyConditions })
      expect(committed).toEqual({ deprecated: { v1beta1: { conditions: [{ ...condition, status }] } } })
      await commitChanges(env.client, Parent, await env.client.get(Parent, key), before, { conditions: [], legacyConditions })
    }
  })

  test('uses the newest object of the cache, so that a change which the cache has received causes no conflict', async () => {
    env = await testEnv({ kinds })
    const before = await env.client.create(Parent, { ...aParent('a', 0), metadata: { ...key, finalizers: ['test.dev/theirs'] } })
    const after = withCondition(before, 'Ours', 'First')
    after.metadata.finalizers = ['test.dev/theirs', 'test.dev/ours']
    const newest = await commitChanges(env.client, Parent, before, withCondition(before, 'Theirs', 'Foreign'), { conditions: [] })
    const requests: string[] = []
    const cache = { newest: () => newest } as unknown as Cache
    await commitChanges(recordRequests(env.client, requests), Parent, before, after, { conditions: ['Ours'], cache })
    expect(requests).toEqual(['patch', 'patch status'])
    expect(await reasons(env.client)).toEqual(['Ours=First', 'Theirs=Foreign'])
    expect((await env.client.get(Parent, key)).metadata.finalizers).toEqual(['test.dev/theirs', 'test.dev/ours'])
  })

  test('sends no read request after a conflict when the cache has received the change of the other writer', async () => {
    env = await testEnv({ kinds })
    const before = await env.client.create(Parent, aParent('a', 0))
    const newest = await commitChanges(env.client, Parent, before, withCondition(before, 'Theirs', 'Foreign'), { conditions: [] })
    const requests: string[] = []
    const cachedVersions = [before, before, newest]
    const cache = { newest: () => cachedVersions.shift() ?? newest } as unknown as Cache
    const after = withCondition(before, 'Ours', 'First')
    await commitChanges(recordRequests(env.client, requests), Parent, before, after, { conditions: ['Ours'], cache })
    expect(requests).toEqual(['patch status', 'patch status'])
    expect(await reasons(env.client)).toEqual(['Ours=First', 'Theirs=Foreign'])
  })

  test('reads the object after a conflict while the cache does not have the change of the other writer', async () => {
    env = await testEnv({ kinds })
    const before = await env.client.create(Parent, aParent('a', 0))
    await commitChanges(env.client, Parent, before, withCondition(before, 'Theirs', 'Foreign'), { conditions: [] })
    const requests: string[] = []
    const cache = { newest: () => before } as unknown as Cache
    const after = withCondition(before, 'Ours', 'First')
    await commitChanges(recordRequests(env.client, requests), Parent, before, after, { conditions: ['Ours'], cache })
    expect(requests).toEqual(['patch status', 'get', 'patch status'])
  })

  test('ignores a cached object that is older, or is another object with the same name', async () => {
    env = await testEnv({ kinds })
    const old = await env.client.create(Parent, aParent('a', 0))
    const before = await commitChanges(env.client, Parent, old, withCondition(old, 'Theirs', 'Foreign'), { conditions: [] })
    const recreated = { ...before, metadata: { ...before.metadata, uid: 'other', resourceVersion: '999999' } }
    for (const [reason, cached] of [
      ['First', old],
      ['Second', recreated],
    ] as const) {
      const requests: string[] = []
      const latest = await env.client.get(Parent, key)
      const cache = { newest: () => cached } as unknown as Cache
      const options = { conditions: ['Ours'], cache }
      await commitChanges(recordRequests(env.client, requests), Parent, latest, withCondition(latest, 'Ours', reason), options)
      expect(requests).toEqual(['patch status'])
    }
    expect(await reasons(env.client)).toEqual(['Theirs=Foreign', 'Ours=Second'])
  })

  test('sends no request without a change', async () => {
    env = await testEnv({ kinds })
    const before = await env.client.create(Parent, aParent('a', 0))
    const requests: string[] = []
    const client = recordRequests(env.client, requests)
    expect(await commitChanges(client, Parent, before, draft(before), { conditions: [] })).toBe(before)
    expect(requests).toEqual([])
  })

  test('writes status before it removes the last finalizer', async () => {
    env = await testEnv({ kinds })
    await env.client.create(Parent, {
      ...aParent('a', 0),
      metadata: { name: 'a', namespace: 'default', finalizers: ['test.dev/hold'] },
    })
    await env.client.delete(Parent, key)
    const before = await env.client.get(Parent, key)
    const after = withCondition(before, 'Ours', 'Done')
    delete after.metadata.finalizers
    const requests: string[] = []
    await commitChanges(recordRequests(env.client, requests), Parent, before, after, { conditions: ['Ours'] })
    expect(requests).toEqual(['patch status', 'patch'])
    expect(await orAbsent(env.client.get(Parent, key))).toBeUndefined()
  })

  test('writes status after the API server has rejected the spec, with the stored generation', async () => {
    env = await testEnv({ kinds })
    const before = await env.client.create(Parent, aParent('a', 0))
    const after = withCondition(before, 'Ours', 'First')
    after.status!.conditions![0]!.observedGeneration = 2
    after.status!.children = 1
    after.metadata.generation = 2
    after.spec.children = 'many' as never
    await expect(commitChanges(env.client, Parent, before, after, { conditions: ['Ours'] })).rejects.toThrow('spec.children')
    const { status } = await env.client.get(Parent, key)
    expect(status).toMatchObject({ children: 1, conditions: [{ type: 'Ours', reason: 'First', observedGeneration: 1 }] })
  })

  test('removes the last finalizer after the API server has rejected the status', async () => {
    env = await testEnv({ kinds })
    await env.client.create(Parent, { ...aParent('a', 0), metadata: { ...key, finalizers: ['test.dev/ours'] } })
    await env.client.delete(Parent, key)
    const before = await env.client.get(Parent, key)
    const after = draft(before)
    after.status = { children: 'many' as never }
    delete after.metadata.finalizers
    await expect(commitChanges(env.client, Parent, before, after, { conditions: [] })).rejects.toThrow('status.children')
    expect(await orAbsent(env.client.get(Parent, key))).toBeUndefined()
  })

  test('reports both errors when the API server rejects spec and status', async () => {
    env = await testEnv({ kinds })
    const before = await env.client.create(Parent, aParent('a', 0))
    const after = draft(before)
    after.spec.children = 'many' as never
    after.status = { children: 'many' as never }
    await expect(commitChanges(env.client, Parent, before, after, { conditions: [] })).rejects.toThrow(
      /spec\.children.*; .*status\.children/,
    )
  })

  test('does not restore a finalizer that another controller has removed', async () => {
    env = await testEnv({ kinds })
    const finalizers = ['test.dev/ours', 'test.dev/theirs']
    await env.client.create(Parent, { ...aParent('a', 0), metadata: { name: 'a', namespace: 'default', finalizers } })
    await env.client.delete(Parent, key)
    const before = await env.client.get(Parent, key)
    await env.client.patch(Parent, key, { type: 'merge', body: { metadata: { finalizers: ['test.dev/ours'] } } })
    const after = draft(before)
    after.metadata.finalizers = ['test.dev/theirs']
    await commitChanges(env.client, Parent, before, after, { conditions: [] })
    expect(await orAbsent(env.client.get(Parent, key))).toBeUndefined()
  })

  test('does not write conditions to another object with the same name', async () => {
    env = await testEnv({ kinds })
    const before = await env.client.create(Parent, aParent('a', 0))
    await env.client.delete(Parent, key)
    await env.client.create(Parent, aParent('a', 7))
    const failure = await commitChanges(env.client, Parent, before, withCondition(before, 'Ours', 'Late'), {
      conditions: ['Ours'],
    }).catch((err: unknown) => err)
    expect(isReason(failure, 'Conflict')).toBe(true)
    expect(await reasons(env.client)).toBeUndefined()
  })
})

describe('ensureFinalizer', () => {
  const key = { namespace: 'default', name: 'a' }
  const finalizersOf = (controllers: readonly string[]) => controllers.map((name) => `test.dev/${name}`)

  test('keeps a finalizer that another controller has added meanwhile', async () => {
    env = await testEnv({ kinds })
    const before = await env.client.create(Parent, aParent('a', 0))
    await env.client.patch(Parent, key, { type: 'merge', body: { metadata: { finalizers: finalizersOf(['theirs']) } } })
    const requests: string[] = []
    const io = { client: recordRequests(env.client, requests), cache: { newest: () => undefined } as never as Cache }
    const { metadata } = await ensureFinalizer({ ...io, signal: new AbortController().signal }, Parent, before, 'test.dev/ours')
    expect(metadata.finalizers).toEqual(finalizersOf(['theirs', 'ours']))
    expect(requests).toEqual(['patch', 'get', 'patch'])
  })

  test('does not write to another object with the same name', async () => {
    env = await testEnv({ kinds })
    const before = await env.client.create(Parent, aParent('a', 0))
    await env.client.delete(Parent, key)
    await env.client.create(Parent, aParent('a', 7))
    const io = { client: env.client, cache: { newest: () => undefined } as never as Cache, signal: new AbortController().signal }
    const failure = await ensureFinalizer(io, Parent, before, 'test.dev/ours').catch((err: unknown) => err)
    expect(isReason(failure, 'Conflict')).toBe(true)
    expect((await env.client.get(Parent, key)).metadata.finalizers).toBeUndefined()
  })
})

test('a kind that two reconciles begin to watch is synced before either of them reads it', async () => {
  const childCounts: string[] = []
  const slowly = (transport: Transport): Transport =>
    withSend(transport, async (request, signal) => {
      if (request.plural === 'children') for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
      return transport.send(request, signal)
    })
  env = await testEnv({
    kinds: [Parent, Child],
    between: slowly,
    controllers: [
      controller({
        name: 'late',
        for: Parent,
        async reconcile({ name }, context) {
          await context.watch(Child, () => [])
          childCounts.push(`${name}: ${(await context.cache.list(Child)).items.length}`)
          return proceed()
        },
      }),
    ],
  })
  await env.client.create(Child, { metadata: { name: 'c', namespace: 'default' }, spec: { of: 'p' } })
  for (const name of ['p', 'q'])
    await env.client.create(Parent, { metadata: { name, namespace: 'default' }, spec: { children: 0 } })
  await env.settle()
  expect(childCounts.sort()).toEqual(['p: 1', 'q: 1'])
})

test('a reconcile does not wait forever for a kind that is not served', async () => {
  let failure: unknown
  env = await testEnv({
    kinds: [Parent],
    controllers: [
      controller({
        name: 'late',
        for: Parent,
        async reconcile(_, context) {
          await context
            .watch(Child, () => [])
            .catch((err: unknown) => {
              failure = err
            })
          return proceed()
        },
      }),
    ],
  })
  await env.client.create(Parent, { metadata: { name: 'p', namespace: 'default' }, spec: { children: 0 } })
  // `settle` does not return while a reconcile runs. Therefore the clock is advanced without it.
  for (let i = 0; i < 500 && !failure; i++) {
    env.clock.step(env.clock.now() + seconds(1))
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(String(failure)).toContain('Reconcile took longer')
})

test('the rate limit does not delay 200 reconciles that change something', async () => {
  const counting = controller({
    name: 'counting',
    for: Parent,
    async reconcile(key, { cache, client }) {
      const parent = cache.peek(Parent, key)
      const children = parent?.status?.children ?? 0
      if (!parent || children === 200) return proceed()
      const body = { status: { children: children + 1 } }
      await client.patch(Parent, key, { type: 'merge', body }, { subresource: 'status' })
      return proceed()
    },
  })
  env = await testEnv({ kinds, controllers: [counting] })
  await env.client.create(Parent, aParent('a', 0))
  await env.settle()
  expect(await env.client.get(Parent, { namespace: 'default', name: 'a' })).toMatchObject({ status: { children: 200 } })
})

test('reconciles yield to timers and sockets, however many keys are ready', async () => {
  // A clock that advances by one millisecond each time it is read.
  let now = 0
  const turn = () => new Promise<void>((resolve) => void setImmediate(resolve))
  const yieldIfDue = eventLoopYielder({ now: () => now++, turnNumber: () => 0, turn, pause: turn })
  const clock = Object.assign(new VirtualClock(), { yieldIfDue })
  let reconciles = 0
  const busy = controller({
    name: 'busy',
    for: Parent,
    sources: [
      {
        start(enqueue) {
          for (let i = 0; i < 500; i++) enqueue({ namespace: 'default', name: `p${i}` })
        },
      },
    ],
    async reconcile(key, { client }) {
      await orAbsent(client.get(Parent, key))
      reconciles++
      return proceed()
    },
  })
  let maximum = 0
  let reconcilesBefore = 0
  const recordMaximum = () => {
    maximum = Math.max(maximum, reconciles - reconcilesBefore)
    reconcilesBefore = reconciles
    if (reconciles < 500) setImmediate(recordMaximum)
  }
  setImmediate(recordMaximum)
  env = await testEnv({ kinds, clock, controllers: [busy] })
  expect(reconciles).toBe(500)
  expect(maximum).toBeLessThan(20)
})

describe('work without a worker', () => {
  /** Creates a controller in which keys `slow…` wait for `response` without a worker. Other keys end at once. Counts the used workers. */
  const createWaitingController = (response: Promise<void>, ended: string[], workers: { current: number; maximum: number }) =>
    controller({
      name: 'waiting',
      for: Parent,
      concurrency: 2,
      async reconcile({ name }, { withoutWorker }) {
        if (name.startsWith('slow')) await withoutWorker(() => Promise.all([response, withoutWorker(() => response)]))
        workers.maximum = Math.max(workers.maximum, ++workers.current)
        await new Promise((resolve) => setImmediate(resolve))
        workers.current--
        ended.push(name)
        return proceed()
      },
    })
  const turns = async (count: number) => {
    for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
  }

  test('occupies no worker until it is complete', async () => {
    const response = Promise.withResolvers<void>()
    const ended: string[] = []
    const workers = { current: 0, maximum: 0 }
    env = await testEnv({ kinds, controllers: [createWaitingController(response.promise, ended, workers)] })
    for (let i = 0; i < 20; i++) await env.client.create(Parent, aParent(`slow${i}`, 0))
    await env.client.create(Parent, aParent('quick', 0))
    while (ended.length === 0) await turns(1)
    expect(ended).toEqual(['quick'])
    response.resolve()
    await env.settle()
    expect(ended).toHaveLength(21)
    expect(workers.maximum).toBe(2)
  })

  test('that fails makes its reconcile fail, which is then retried', async () => {
    let calls = 0
    const failing = controller({
      name: 'failing',
      for: Parent,
      concurrency: 1,
      async reconcile(_, { withoutWorker }) {
        await withoutWorker(() => (++calls < 3 ? Promise.reject(new Error('no response')) : Promise.resolve()))
        return proceed()
      },
    })
    env = await testEnv({ kinds, controllers: [failing] })
    await env.client.create(Parent, aParent('a', 0))
    await env.advance(seconds(1))
    expect(calls).toBe(3)
  })
})
