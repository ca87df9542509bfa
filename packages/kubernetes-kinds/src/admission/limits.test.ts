/** LimitRanger and ResourceQuota. */
import { unknownKind } from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Pod } from '../kinds/schemas/types.ts'
import { limitRanger } from './limit-ranger.ts'
import { at, rejection, type TestServer, testServer } from '../test-server.ts'

const kind = (name: string, plural: string) => unknownKind({ apiVersion: 'v1', kind: name, plural })
const pods = kind('Pod', 'pods')
const claims = kind('PersistentVolumeClaim', 'persistentvolumeclaims')
const ranges = kind('LimitRange', 'limitranges')
const quotas = kind('ResourceQuota', 'resourcequotas')
const configMaps = kind('ConfigMap', 'configmaps')

let t: TestServer
beforeEach(async () => {
  t = await testServer()
})

const aPod = (name: string, resources: object = {}, spec: object = {}) =>
  ({ metadata: at(name), spec: { containers: [{ name: 'c', image: 'i', resources }], ...spec } }) as never
const aClaim = (name: string, storage: string) =>
  ({ metadata: at(name), spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } } }) as never

describe('LimitRanger', () => {
  const limit = (...limits: object[]) => t.client.create(ranges, { metadata: at('l'), spec: { limits } } as never)

  test('sets the default requests and limits of containers, and lists these defaults in an annotation', async () => {
    await limit({ type: 'Container', default: { cpu: '2', memory: '1Gi' }, defaultRequest: { cpu: '100m' } })
    const pod = (await t.client.create(pods, aPod('p', { limits: { memory: '2Gi' } }))) as unknown as Pod
    expect(pod.spec.containers![0]!.resources).toEqual({
      limits: { cpu: '2', memory: '2Gi' },
      requests: { cpu: '100m', memory: '2Gi' },
    })
    expect(pod.metadata.annotations).toEqual({
      'kubernetes.io/limit-ranger': 'LimitRanger plugin set: cpu request for container c; cpu limit for container c',
    })
  })

  const manyDefaults = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`example.com/resource-${index}`, '1']))
  const manyContainers = (length: number) => Array.from({ length }, (_, index) => ({ name: `c${index}`, image: 'i' }))

  test('sets the defaults of all LimitRanges, and lists those of the last LimitRange in the annotation', async () => {
    await limit({ type: 'Container', default: manyDefaults })
    const last = { metadata: at('m'), spec: { limits: [{ type: 'Container', default: { 'example.com/last': '1' } }] } }
    await t.client.create(ranges, last as never)
    const pod = (await t.client.create(pods, aPod('p', {}, { containers: manyContainers(130) }))) as unknown as Pod
    const counts = pod.spec.containers!.map(({ resources }) => Object.keys(resources?.limits ?? {}).length)
    expect(new Set(counts)).toEqual(new Set([101]))
    expect(pod.metadata.annotations!['kubernetes.io/limit-ranger']).toMatch(/^LimitRanger plugin set: example.com\/last /)
  })

  test('rejects a pod when the annotation that lists its defaults is too long', async () => {
    await limit({ type: 'Container', default: manyDefaults })
    expect(await rejection(t.client.create(pods, aPod('p', {}, { containers: manyContainers(200) })))).toContain(
      'metadata.annotations: Too long: may not be more than 262144 bytes',
    )
  })

  test('stops setting defaults when the pod is too large; setting defaults and checking limits yield to the event loop', async () => {
    let yields = 0
    Object.assign(t.clock, { yieldIfDue: () => void yields++ })
    const containers = manyContainers(2000)
    const write = {
      operation: 'CREATE',
      info: { storage: 'pods' },
      namespace: 'default',
      object: { metadata: {}, spec: { containers } },
      store: { list: () => [{ spec: { limits: [{ type: 'Container', default: manyDefaults }] } }] },
      clock: t.clock,
    }
    expect(await rejection(limitRanger.mutate!(write as never) as Promise<void>)).toContain('etcdserver: request is too large')
    expect([0, 1999].map((index) => 'resources' in containers[index]!)).toEqual([true, false])
    expect(yields).toBeGreaterThan(100)
    yields = 0
    await limitRanger.validate!({ ...write, object: { spec: { containers: containers.slice(0, 50) } } } as never)
    expect(yields).toBeGreaterThan(10)
  })

  test.each<[object, object, string]>([
    [{ min: { cpu: '1' } }, { requests: { cpu: '500m' } }, 'minimum cpu usage per Container is 1, but request is 500m'],
    [{ max: { cpu: '1' } }, { limits: { cpu: '2' } }, 'maximum cpu usage per Container is 1, but limit is 2'],
    [{ maxLimitRequestRatio: { cpu: '2' } }, { requests: { cpu: '1' }, limits: { cpu: '3' } }, 'but provided ratio is 3.000000'],
  ])('the limit %j rejects a container with %j', async (item, resources, text) => {
    await limit({ type: 'Container', ...item })
    expect(await rejection(t.client.create(pods, aPod('p', resources)))).toMatch(/^403 Forbidden: pods "p" is forbidden: /)
    expect(await rejection(t.client.create(pods, aPod('p', resources)))).toContain(text)
  })

  test('applies the limits of pods to the sum of all containers, and the limits of claims to each claim', async () => {
    await limit(
      { type: 'Pod', max: { cpu: '1' } },
      { type: 'PersistentVolumeClaim', max: { storage: '2Gi' }, min: { storage: '1Gi' } },
    )
    const twoContainers = ['a', 'b'].map((name) => ({ name, image: 'i', resources: { limits: { cpu: '600m' } } }))
    expect(await rejection(t.client.create(pods, aPod('p', {}, { containers: twoContainers })))).toContain(
      'maximum cpu usage per Pod is 1, but limit is 1200m',
    )
    expect(await rejection(t.client.create(claims, aClaim('small', '1Mi')))).toContain('but request is 1Mi')
    expect(await rejection(t.client.create(claims, aClaim('large', '3Gi')))).toContain('but request is 3Gi')
    expect(await rejection(t.client.create(claims, aClaim('right', '1Gi')))).toBe('accepted')
  })

  test('can be disabled', async () => {
    t = await testServer({ admissionPlugins: { disable: ['LimitRanger'] } })
    await limit({ type: 'Container', max: { cpu: '1' } })
    expect(await rejection(t.client.create(pods, aPod('p')))).toBe('accepted')
  })
})

describe('ResourceQuota', () => {
  const quota = (hard: object, spec: object = {}) =>
    t.client.create(quotas, { metadata: at('q'), spec: { hard, ...spec } } as never)

  test('counts existing objects, and no deleted objects', async () => {
    await quota({ 'count/configmaps': '1' })
    const create = (name: string) => rejection(t.client.create(configMaps, { metadata: at(name) } as never))
    expect(await create('a')).toBe('accepted')
    expect(await create('b')).toBe(
      '403 Forbidden: configmaps "b" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1',
    )
    await t.client.delete(configMaps, at('a'))
    expect(await create('b')).toBe('accepted')
  })

  test('sums the requests of pods that have not finished, and rejects a pod without the limited request', async () => {
    await quota({ 'requests.cpu': '1', pods: '5' })
    const create = (name: string, cpu: string) => rejection(t.client.create(pods, aPod(name, { requests: { cpu } })))
    expect(await create('a', '700m')).toBe('accepted')
    expect(await create('b', '400m')).toContain(
      'exceeded quota: q, requested: requests.cpu=400m, used: requests.cpu=700m, limited: requests.cpu=1',
    )
    await t.client.patch(pods, at('a'), { type: 'merge', body: { status: { phase: 'Failed' } } }, { subresource: 'status' })
    expect(await create('b', '400m')).toBe('accepted')
    expect(await rejection(t.client.create(pods, aPod('none')))).toContain('failed quota: q: must specify requests.cpu for: c')
  })

  test.each<[string[], object, object]>([
    [['BestEffort'], {}, { requests: { cpu: '1' } }],
    [['NotBestEffort'], { requests: { cpu: '1' } }, {}],
  ])('with scope %j, counts only pods of that scope', async (scopes, countedResources, otherResources) => {
    await quota({ pods: '0' }, { scopes })
    expect(await rejection(t.client.create(pods, aPod('a', countedResources)))).toContain('exceeded quota: q')
    expect(await rejection(t.client.create(pods, aPod('b', otherResources)))).toBe('accepted')
  })

  test('with scope CrossNamespacePodAffinity, counts a pod with anti-affinity only if it selects other namespaces', async () => {
    await quota({ pods: '0' }, { scopes: ['CrossNamespacePodAffinity'] })
    const term = { topologyKey: 'zone', labelSelector: {} }
    const withTerm = (added: object) => ({
      affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ ...term, ...added }] } },
    })
    expect(await rejection(t.client.create(pods, aPod('a', {}, withTerm({ namespaces: ['n'] }))))).toContain('exceeded quota: q')
    expect(await rejection(t.client.create(pods, aPod('b', {}, withTerm({ namespaceSelector: {} }))))).toContain(
      'exceeded quota: q',
    )
    expect(await rejection(t.client.create(pods, aPod('c', {}, withTerm({}))))).toBe('accepted')
  })

  const classScope = (operator: string, ...values: string[]) => ({
    scopeSelector: {
      matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator, ...(values.length > 0 ? { values } : {}) }],
    },
  })
  const inClass = (name: string, volumeAttributesClassName?: string) => {
    const claim = aClaim(name, '1Gi') as { spec: object }
    return { ...claim, spec: { ...claim.spec, ...(volumeAttributesClassName ? { volumeAttributesClassName } : {}) } } as never
  }
  test.each([
    [classScope('Exists'), ['fast', 'slow']],
    [classScope('DoesNotExist'), [undefined]],
    [classScope('In', 'fast'), ['fast']],
    [classScope('NotIn', 'fast'), ['slow', undefined]],
  ])('with %j, counts only the claims that the selector selects', async (spec, counted) => {
    await quota({ persistentvolumeclaims: '0' }, spec)
    for (const [index, name] of ['fast', 'slow', undefined].entries()) {
      const outcome = await rejection(t.client.create(claims, inClass(`c${index}`, name)))
      expect(outcome.includes('exceeded quota: q')).toBe(counted.includes(name))
    }
  })

  test('counts a claim whose class changes to the class of the quota', async () => {
    await quota({ 'requests.storage': '1Gi' }, classScope('In', 'fast'))
    await t.client.create(claims, inClass('a', 'fast'))
    await t.client.create(claims, inClass('b', 'slow'))
    const status = { status: { phase: 'Bound' } }
    await t.client.patch(claims, at('b'), { type: 'merge', body: status }, { subresource: 'status' })
    const body = { spec: { volumeAttributesClassName: 'fast' } }
    expect(await rejection(t.client.patch(claims, at('b'), { type: 'merge', body }))).toContain(
      'exceeded quota: q, requested: requests.storage=1Gi, used: requests.storage=1Gi, limited: requests.storage=1Gi',
    )
  })

  test('applies to concurrent writes, and does not count failed writes', async () => {
    await quota({ 'count/configmaps': '3' })
    const create = (name: string) => rejection(t.client.create(configMaps, { metadata: at(name) } as never))
    const outcomes = await Promise.all(['a', 'b', 'c', 'd', 'e', 'A'].map(create))
    expect(outcomes.filter((outcome) => outcome === 'accepted')).toHaveLength(3)
    await t.client.delete(configMaps, at('a'))
    expect(await create('B')).toContain('422')
    expect(await create('f')).toBe('accepted')
    expect(await create('g')).toContain('exceeded quota')
  })

  test('limits the requested storage of claims, and can be disabled', async () => {
    await quota({ 'requests.storage': '2Gi' })
    expect(await rejection(t.client.create(claims, aClaim('c', '3Gi')))).toContain('requests.storage=3Gi')
    t = await testServer({ admissionPlugins: { disable: ['ResourceQuota'] } })
    await quota({ 'requests.storage': '2Gi' })
    expect(await rejection(t.client.create(claims, aClaim('c', '3Gi')))).toBe('accepted')
  })
})
