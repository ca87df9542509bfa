import type { Cluster, Machine, MachineDrainRule } from '@capstan/api'
import { type ApiRequest, createClient, Namespace, type Node, type Pod, seconds, StatusError, VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { drainNode } from './drain.ts'

const startedAt = '2026-01-01T00:00:00Z'
const meta = (name: string, overrides = {}) => ({
  name,
  uid: name,
  resourceVersion: '1',
  creationTimestamp: startedAt,
  ...overrides,
})
const machine = { metadata: meta('m1', { namespace: 'default' }) } as unknown as Machine
const cluster = { metadata: meta('demo', { namespace: 'default' }) } as unknown as Cluster

interface Scenario {
  pods: string[]
  node?: Partial<Node>
  rules?: MachineDrainRule[]
  /** Responds to the eviction of a Pod. */
  evict: (name: string, request: ApiRequest, clock: VirtualClock) => Promise<void> | void
}

/** Drains a Node of a simulated workload cluster. Returns the requests, and the lines of the message without the first one. */
async function drain({ pods, node, rules = [], evict }: Scenario) {
  const clock = new VirtualClock()
  const requests: ApiRequest[] = []
  const objects: { [plural: string]: object[] } = {
    pods: pods.map((name): Pod => ({ apiVersion: 'v1', kind: 'Pod', metadata: meta(name, { namespace: 'default' }) as never })),
    namespaces: [{ apiVersion: 'v1', kind: Namespace.kind, metadata: meta('default') }],
  }
  const client = createClient({
    close: () => {},
    watch: () => Promise.reject(new Error('not watched')),
    async send(request) {
      requests.push(request)
      if (request.subresource === 'eviction') return evict(request.name!, request, clock)
      if (request.verb === 'patch') return {}
      const { limit = 100, continue: from = '0' } = request.options ?? {}
      const items = objects[request.plural]!
      const end = Number(from) + limit
      return { metadata: end < items.length ? { continue: String(end) } : {}, items: items.slice(Number(from), end) }
    },
  })
  const target = {
    client,
    node: { metadata: meta('node-m1'), ...node } as Node,
    machine,
    cluster,
    rules,
    clock,
    signal: new AbortController().signal,
  }
  const draining = drainNode(target, startedAt)
  // Evictions may wait for the clock.
  let isDone = false
  const drained = draining.finally(() => (isDone = true))
  drained.catch(() => {})
  while (!isDone) {
    await new Promise((resolve) => setImmediate(resolve))
    if (!isDone && clock.nextDue !== undefined) clock.step(clock.nextDue)
  }
  return { lines: (await drained)?.split('\n').slice(1), requests }
}

const rejection = (reason: 'TooManyRequests' | 'Forbidden', message: string, causes?: { reason?: string; message?: string }[]) =>
  new StatusError(reason, message, causes ? { details: { causes } } : {})

test('failed evictions are reported with the message of the API server, in a terminating namespace with a fixed one, and after 404 not at all', async () => {
  const violated = "Cannot evict pod as it would violate the pod's disruption budget."
  const budget = { reason: 'DisruptionBudget', message: 'The disruption budget web needs 1 healthy pods and has 1 currently' }
  const { lines } = await drain({
    pods: ['budget', 'busy', 'gone', 'other', 'terminating'],
    evict(name) {
      if (name === 'budget') throw rejection('TooManyRequests', violated, [budget])
      if (name === 'busy') throw rejection('TooManyRequests', 'try again later')
      if (name === 'gone') throw new StatusError('NotFound', 'pods "gone" not found')
      if (name === 'other') throw rejection('Forbidden', 'not allowed')
      throw rejection('Forbidden', 'unable to create new content', [{ reason: 'NamespaceTerminating' }])
    },
  })
  expect(lines).toEqual([
    `* Pod default/budget: cannot evict pod as it would violate the pod's disruption budget. ${budget.message}`,
    '* Pod default/terminating: failed to evict Pod, Cannot evict pod from terminating namespace: unable to create eviction (kube-controller-manager should set deletionTimestamp)',
    '* Pod default/other: failed to evict Pod, not allowed',
    '* Pod default/busy: failed to evict Pod, try again later',
  ])
})

test('evictions are sent for at most ten seconds in one reconcile', async () => {
  const { lines, requests } = await drain({
    pods: ['a', 'b', 'c', 'd'],
    evict: (_, __, clock) => new Promise((resolve) => void clock.schedule(seconds(4), resolve)),
  })
  expect(lines).toEqual([
    '* Pods default/a, default/b: deletionTimestamp set, but still not removed from the Node',
    '* Pods default/c, default/d: failed to evict Pod, eviction timeout of 10s reached, eviction will be retried',
  ])
  expect(requests.filter(({ subresource }) => subresource === 'eviction').map(({ name }) => name)).toEqual(['a', 'b', 'c'])
})

test('all pages of Pods are read, and the Node is cordoned once', async () => {
  const pods = Array.from({ length: 250 }, (_, index) => `pod-${1000 + index}`)
  const { lines, requests } = await drain({ pods, evict: () => {} })
  expect(lines).toEqual([
    '* Pods default/pod-1000, default/pod-1001, default/pod-1002, ... (247 more): deletionTimestamp set, but still not removed from the Node',
  ])
  const list = requests.filter(({ plural, verb }) => plural === 'pods' && verb === 'list')
  expect(list.map(({ options }) => options)).toEqual([
    { fieldSelector: 'spec.nodeName=node-m1', limit: 100 },
    { fieldSelector: 'spec.nodeName=node-m1', limit: 100, continue: '100' },
    { fieldSelector: 'spec.nodeName=node-m1', limit: 100, continue: '200' },
  ])
  expect(requests.filter(({ verb }) => verb === 'patch').map(({ body }) => body)).toEqual([{ spec: { unschedulable: true } }])
})

test('Pods of an unreachable Node get a grace period of one second, other Pods keep their own; a cordoned Node is not patched', async () => {
  const graceOf = async (status: string) => {
    const conditions = [{ type: 'Ready', status }]
    const { requests } = await drain({
      pods: ['a'],
      node: { spec: { unschedulable: true }, status: { conditions } } as never,
      evict: () => {},
    })
    expect(requests.some(({ verb }) => verb === 'patch')).toBe(false)
    return (requests.find(({ subresource }) => subresource === 'eviction')!.body as { deleteOptions: object }).deleteOptions
  }
  expect(await graceOf('Unknown')).toEqual({ gracePeriodSeconds: 1 })
  expect(await graceOf('False')).toEqual({})
})

test('a drain is complete if the evictions return 404, or if there are no Pods', async () => {
  const evict = () => {
    throw new StatusError('NotFound', 'pods "a" not found')
  }
  expect((await drain({ pods: ['a'], evict })).lines).toBeUndefined()
  expect((await drain({ pods: [], evict })).lines).toBeUndefined()
})

test('a rule with an invalid selector that was stored without admission fails the drain', async () => {
  const selector = { matchExpressions: [{ key: 'os', operator: 'Like', values: ['linux'] }] }
  const rule = {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'MachineDrainRule',
    metadata: meta('bad', { namespace: 'default' }),
    spec: { drain: { behavior: 'Skip' }, pods: [{ selector }] },
  } as MachineDrainRule
  await expect(drain({ pods: ['a'], rules: [rule], evict: () => {} })).rejects.toThrow(
    'failed to get Pods for eviction: failed to get matching MachineDrainRules: invalid selectors in MachineDrainRule bad: spec.pods[0].selector: Invalid value: {"matchExpressions":[{"key":"os","operator":"Like","values":["linux"]}]}: "Like" is not a valid label selector operator',
  )
})
