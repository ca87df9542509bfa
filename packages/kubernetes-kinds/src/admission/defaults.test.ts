/** Tests plugins that set defaults, finalizers or taints, and the plugin PersistentVolumeClaimResize. */
import { type UnknownObject, unknownKind } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import type { Node, PersistentVolumeClaim, Pod } from '../kinds/schemas/types.ts'
import { at, rejection, testServer } from '../test-server.ts'
import { controllerPlugins } from './plugin-names.ts'

const kind = (name: string, plural: string) => unknownKind({ apiVersion: 'v1', kind: name, plural })
const pods = kind('Pod', 'pods')
const nodes = kind('Node', 'nodes')
const claims = kind('PersistentVolumeClaim', 'persistentvolumeclaims')
const classes = unknownKind({ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', plural: 'storageclasses' })

const aPod = (spec: object) => ({ metadata: at('p'), spec: { containers: [{ name: 'c', image: 'i' }], ...spec } }) as never
const aClaim = (spec: object = {}, metadata: object = {}) =>
  ({
    metadata: { ...at('c'), ...metadata },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  }) as never
const aClass = (name: string, fields: object = {}, isDefault = false) =>
  ({
    metadata: { name, ...(isDefault ? { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } } : {}) },
    provisioner: 'example.com/p',
    ...fields,
  }) as never
const as = <T>(object: Promise<UnknownObject>) => object as unknown as Promise<T>

describe('DefaultTolerationSeconds', () => {
  const tolerationFor300s = (key: string) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 })
  const [notReady, unreachable] = ['not-ready', 'unreachable'].map((name) => tolerationFor300s(`node.kubernetes.io/${name}`))
  const notReadyToleration = { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' }
  const otherToleration = { key: 'a', operator: 'Exists', effect: 'NoSchedule' }

  test.each<[object[], object[]]>([
    [[], [notReady!, unreachable!]],
    [[otherToleration], [otherToleration, notReady!, unreachable!]],
    [[notReadyToleration], [notReadyToleration, unreachable!]],
    [[{ operator: 'Exists' }], [{ operator: 'Exists' }]],
  ])('the tolerations %j become %j', async (tolerations, expected) => {
    const { client } = await testServer()
    expect((await as<Pod>(client.create(pods, aPod({ tolerations })))).spec.tolerations).toEqual(expected)
  })

  test('adds tolerations with the configured seconds', async () => {
    const { client } = await testServer({ tolerationSeconds: { notReady: 30, unreachable: 0 } })
    const { tolerations = [] } = (await as<Pod>(client.create(pods, aPod({ tolerations: [] })))).spec
    expect(tolerations.map(({ tolerationSeconds }) => tolerationSeconds)).toEqual([30, 0])
  })
})

test('new Nodes get a taint and new PersistentVolumeClaims a finalizer only when `controllerPlugins` are enabled', async () => {
  const { client } = await testServer({ admissionPlugins: { enable: controllerPlugins } })
  const node = await as<Node>(client.create(nodes, { metadata: { name: 'n' } } as never))
  expect(node.spec.taints).toEqual([{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }])
  expect((await client.create(claims, aClaim())).metadata.finalizers).toEqual(['kubernetes.io/pvc-protection'])

  const { client: defaultClient } = await testServer()
  expect((await as<Node>(defaultClient.create(nodes, { metadata: { name: 'n' } } as never))).spec.taints).toBeUndefined()
  expect((await defaultClient.create(claims, aClaim())).metadata.finalizers).toBeUndefined()
})

describe('DefaultStorageClass', () => {
  test.each<[string, object, object, string | undefined]>([
    ['gets the newer of two default classes if it names no class', {}, {}, 'newer'],
    ['keeps the class that it names', { storageClassName: 'other' }, {}, 'other'],
    ['keeps an explicitly empty class', { storageClassName: '' }, {}, ''],
    [
      'gets no class if the deprecated annotation names one',
      {},
      { annotations: { 'volume.beta.kubernetes.io/storage-class': 'other' } },
      undefined,
    ],
  ])('a claim %s', async (_, spec, metadata, expected) => {
    const { client, clock } = await testServer()
    for (const name of ['older', 'newer']) {
      await client.create(classes, aClass(name, {}, true))
      clock.step(clock.now() + 2000)
    }
    await client.create(classes, aClass('newest'))
    const claim = await as<PersistentVolumeClaim>(client.create(claims, aClaim(spec, metadata)))
    expect(claim.spec.storageClassName).toBe(expected)
  })
})

describe('PersistentVolumeClaimResize', () => {
  async function grow(phase: string, allowVolumeExpansion: boolean): Promise<string> {
    const { client } = await testServer()
    await client.create(classes, aClass('s', { allowVolumeExpansion }))
    await client.create(claims, aClaim({ storageClassName: 's', volumeName: 'v' }))
    await client.patch(claims, at('c'), { type: 'merge', body: { status: { phase } } }, { subresource: 'status' })
    const body = { spec: { resources: { requests: { storage: '2Gi' } } } }
    return rejection(client.patch(claims, at('c'), { type: 'merge', body }))
  }
  test.each([
    ['Bound', true, /^accepted$/],
    ['Bound', false, /only dynamically provisioned pvc can be resized/],
    ['Pending', true, /spec is immutable after creation/],
  ])(
    'growing a claim in phase %s, with allowVolumeExpansion %j, results in %s',
    async (phase, allowVolumeExpansion, expected) => {
      expect(await grow(phase, allowVolumeExpansion)).toMatch(expected)
    },
  )
})
