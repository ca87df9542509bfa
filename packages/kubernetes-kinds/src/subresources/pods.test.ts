/** Subresources, deletion, validation and defaults of pods on a server without kubelets. */
import { Namespace, Node, Pod, type Status, unknownKind } from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import { at, rejection, type TestServer, testServer } from '../test-server.ts'

let t: TestServer
beforeEach(async () => {
  t = await testServer()
})

const pods = unknownKind({ apiVersion: 'v1', kind: 'Pod', plural: 'pods' })
const aPod = (name: string, spec: object = {}) =>
  ({ metadata: at(name), spec: { containers: [{ name: 'c', image: 'i' }], ...spec } }) as never
const aNode = (name: string, addresses: object[] = []) => ({ metadata: { name }, status: { addresses } }) as never
const send = (verb: 'create' | 'get', name: string, subresource: string, body: object = {}): Promise<Status> =>
  t.client.transport.send({ verb, group: '', version: 'v1', plural: 'pods', ...at(name), subresource, body }) as never
const bind = (name: string, target: object) =>
  send('create', name, 'binding', { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target })
const remainingPods = async () => (await t.client.list(Pod, { namespace: 'default' })).items.map(({ metadata }) => metadata.name)

describe('binding', () => {
  test('assigns a pod to a node, only once', async () => {
    await t.client.create(pods, aPod('p'))
    expect(await bind('p', { kind: 'Node', name: 'n' })).toMatchObject({ status: 'Success', code: 201 })
    expect(await t.client.get(pods, at('p'))).toMatchObject({
      spec: { nodeName: 'n' },
      status: { conditions: [{ type: 'PodScheduled', status: 'True' }] },
    })
    expect(await rejection(bind('p', { kind: 'Node', name: 'm' }))).toBe(
      '409 Conflict: Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"',
    )
  })

  test.each<[object, object, string]>([
    [{}, { kind: 'Node' }, 'target.name: Required value'],
    [{}, { kind: 'Pod', name: 'n' }, 'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"'],
    [{ schedulingGates: [{ name: 'a.b/c' }] }, { name: 'n' }, 'pod p has non-empty .spec.schedulingGates'],
  ])('of a pod %j to %j is rejected', async (spec, target, text) => {
    await t.client.create(pods, aPod('p', spec))
    expect(await rejection(bind('p', target))).toContain(text)
  })
})

test('an eviction in a namespace that is being deleted is rejected', async () => {
  await t.client.create(Namespace, { metadata: { name: 'old' } })
  const inOld = { namespace: 'old', name: 'p' }
  await t.client.create(Pod, {
    metadata: { ...inOld, finalizers: ['example.com/hold'] },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  } as never)
  await t.client.delete(Namespace, { name: 'old' })
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: inOld }
  const eviction = { verb: 'create', group: '', version: 'v1', plural: 'pods', ...inOld, subresource: 'eviction', body } as const
  expect(await rejection(t.client.transport.send(eviction))).toBe(
    '403 Forbidden: pods "p" is forbidden: unable to create new content in namespace old because it is being terminated',
  )
})

describe('a deletion', () => {
  const remove = (name: string, gracePeriodSeconds?: number) =>
    t.client.delete(Pod, at(name), gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds })
  const deletionFields = async (name: string) => {
    const { deletionTimestamp, deletionGracePeriodSeconds } = (await t.client.get(Pod, at(name))).metadata
    return { after: Date.parse(deletionTimestamp ?? '') - t.clock.now(), deletionGracePeriodSeconds }
  }

  test('removes a pod without a node immediately', async () => {
    await t.client.create(pods, aPod('p'))
    await remove('p')
    expect(await remainingPods()).toEqual([])
  })

  test('keeps a pod on a node for its grace period, which can be shortened but not extended', async () => {
    await t.client.create(pods, aPod('p', { nodeName: 'n', terminationGracePeriodSeconds: 60 }))
    await remove('p')
    expect(await deletionFields('p')).toEqual({ after: 60_000, deletionGracePeriodSeconds: 60 })
    await remove('p', 10)
    expect(await deletionFields('p')).toEqual({ after: 10_000, deletionGracePeriodSeconds: 10 })
    await remove('p', 100)
    expect(await deletionFields('p')).toEqual({ after: 10_000, deletionGracePeriodSeconds: 10 })
    await remove('p', 0)
    expect(await remainingPods()).toEqual([])
  })

  test('has a grace period that ends in the year 9999 at the latest', async () => {
    await t.client.create(pods, aPod('p', { nodeName: 'n' }))
    await remove('p', 8_600_000_000_000)
    expect((await t.client.get(Pod, at('p'))).metadata.deletionTimestamp).toBe('9999-12-31T23:59:59Z')
    await remove('p', 10)
    expect(await deletionFields('p')).toEqual({ after: 10_000, deletionGracePeriodSeconds: 10 })
  })

  test('removes a finished pod immediately', async () => {
    await t.client.create(pods, aPod('p', { nodeName: 'n' }))
    await t.client.patch(pods, at('p'), { type: 'merge', body: { status: { phase: 'Succeeded' } } }, { subresource: 'status' })
    await remove('p')
    expect(await remainingPods()).toEqual([])
  })

  test('removes every pod immediately on a server without graceful deletion', async () => {
    t = await testServer({ gracefulDeletion: false })
    await t.client.create(pods, aPod('p', { nodeName: 'n' }))
    await remove('p')
    expect(await remainingPods()).toEqual([])
  })
})

describe('connections', () => {
  beforeEach(async () => {
    await t.client.create(Node, aNode('unreachable', [{ type: 'InternalIP', address: '10.9.9.9' }]))
    await t.client.create(Node, aNode('bare'))
  })

  test.each<[string, object, string, object, string]>([
    [
      'the log of a pod on an unreachable node',
      { nodeName: 'unreachable' },
      'log',
      {},
      'Get "https://10.9.9.9:10250/containerLogs/default/p/c": dial tcp 10.9.9.9:10250',
    ],
    [
      'exec in a pod on an unreachable node',
      { nodeName: 'unreachable' },
      'exec',
      {},
      'Get "https://10.9.9.9:10250/exec/default/p/c"',
    ],
    [
      'a port forwarding to a pod on an unreachable node',
      { nodeName: 'unreachable' },
      'portforward',
      {},
      'Get "https://10.9.9.9:10250/portForward/default/p"',
    ],
    ['a pod on a node without addresses', { nodeName: 'bare' }, 'log', {}, 'no preferred addresses found; known addresses: []'],
    ['a pod on a missing node', { nodeName: 'gone' }, 'log', {}, '404 NotFound: pods "gone" not found'],
    ['a pod without a node', {}, 'exec', {}, '400 BadRequest: pod p does not have a host assigned'],
    [
      'a container that the pod does not have',
      {},
      'log',
      { container: 'x' },
      '400 BadRequest: container x is not valid for pod p',
    ],
    [
      'a pod with two containers, without a container name',
      { containers: ['a', 'b'].map((name) => ({ name, image: 'i' })) },
      'attach',
      {},
      '400 BadRequest: a container name must be specified for pod p, choose one of: [a b]',
    ],
    ['a proxy request to a pod without an address', {}, 'proxy', {}, '400 BadRequest: address not allowed'],
  ])('fail with an error that names the cause: %s', async (_, spec, subresource, options, text) => {
    await t.client.create(pods, aPod('p', spec))
    expect(await rejection(send('get', 'p', subresource, options))).toContain(text)
  })

  test('return the empty log of a pod without a node', async () => {
    await t.client.create(pods, aPod('p'))
    expect(await send('get', 'p', 'log')).toMatchObject({ status: 'Success', code: 204 })
  })
})

const draftPod = (spec: object) =>
  t.client.create(Pod, { metadata: at('draft'), spec: { containers: [{ name: 'c', image: 'i' }], ...spec } } as never, {
    dryRun: true,
  })

test.each<[object, string]>([
  [
    { resourceClaims: [{ name: 'a' }] },
    'spec.resourceClaims[0]: Invalid value: {"Name":"a","ResourceClaimName":null,"ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`',
  ],
  [
    { resourceClaims: [{ name: 'a', resourceClaimName: 'x', resourceClaimTemplateName: 'y' }] },
    'spec.resourceClaims[0]: Invalid value: {"Name":"a","ResourceClaimName":"x","ResourceClaimTemplateName":"y"}: at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified',
  ],
  [
    { resourceClaims: ['x', 'y'].map((resourceClaimName) => ({ name: 'a', resourceClaimName })) },
    'spec.resourceClaims[1].name: Duplicate value: "a"',
  ],
  [{ os: { name: 'plan9' } }, 'spec.os: Unsupported value: "plan9": supported values: "linux", "windows"'],
])('a pod with %j is rejected', async (spec, message) => {
  expect(await rejection(draftPod(spec))).toBe(`422 Invalid: Pod "draft" is invalid: ${message}`)
})

test.each<[limits: object, container: object, requests: object]>([
  [{ cpu: '1', memory: '1Gi' }, {}, { cpu: '1', memory: '1Gi' }],
  [{ cpu: '1', memory: '1Gi' }, { requests: { cpu: '200m' } }, { cpu: '200m', memory: '1Gi' }],
  [{ cpu: '1' }, { limits: { cpu: '300m' } }, { cpu: '300m' }],
])('a pod with limits %j and container resources %j requests %j', async (limits, resources, requests) => {
  const drafted = await draftPod({ containers: [{ name: 'c', image: 'i', resources }], resources: { limits } })
  expect(drafted).toMatchObject({ spec: { resources: { limits, requests } } })
})
