import { isReason, type KubeObject, notFound, type Reader } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { contractOfVersion, latestContract } from '@capstan/api'
import { externalKind } from './contract-version.ts'
import { getExternal } from './get.ts'

const aCrd = (labels: Record<string, string>): KubeObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'devmachines.infra.example.com', uid: 'u', resourceVersion: '1', creationTimestamp: '', labels },
})

/** A reader of the given objects, keyed by `plural/name`. */
const aReader = (objects: Record<string, KubeObject>): Reader => ({
  get: (kind, { name }) => {
    const object = objects[`${kind.plural}/${name}`]
    return object ? Promise.resolve(object as never) : Promise.reject(notFound(kind, name))
  },
  list: () => Promise.reject(new Error('not needed')),
})

describe('the contract of a kind', () => {
  test.each([
    [
      'is the newest that the labels name',
      { 'cluster.x-k8s.io/v1beta1': 'v1beta1', 'cluster.x-k8s.io/v1beta2': 'v1beta2' },
      'v1beta2 v1beta2',
    ],
    [
      'comes with the greatest API version that its label lists, in any order',
      { 'cluster.x-k8s.io/v1beta2': 'v1beta3_v1_v1beta10' },
      'v1beta2 v1',
    ],
    ['is an older one when no label names a newer one', { 'cluster.x-k8s.io/v1beta1': 'v1alpha1_v1beta1' }, 'v1beta1 v1beta1'],
    [
      'is an older one when the label of the newest is empty',
      { 'cluster.x-k8s.io/v1beta2': '', 'cluster.x-k8s.io/v1beta1': 'v1' },
      'v1beta1 v1',
    ],
  ])('%s', (_, labels, expected) => {
    const { contract, version } = latestContract(aCrd(labels as never))
    expect(`${contract} ${version}`).toBe(expected)
  })

  test('is reported as missing, with the name of the CustomResourceDefinition, when no label has a supported contract', () => {
    expect(() => latestContract(aCrd({ 'cluster.x-k8s.io/v1alpha4': 'v1' }))).toThrow(
      'cannot find any versions matching contract versions ["v1beta2" "v1beta1"] for CRD devmachines.infra.example.com as contract version label(s) are either missing or empty',
    )
  })

  test('of a given API version is the newest contract whose label names this version', () => {
    const crd = aCrd({ 'cluster.x-k8s.io/v1beta1': 'v1_v1beta1', 'cluster.x-k8s.io/v1beta2': 'v1' })
    expect([contractOfVersion(crd, 'v1'), contractOfVersion(crd, 'v1beta1')]).toEqual(['v1beta2', 'v1beta1'])
    expect(() => contractOfVersion(crd, 'v2')).toThrow('cannot find any contract version matching version v2')
  })
})

describe('a referenced object', () => {
  const ref = { apiGroup: 'infra.example.com', kind: 'DevMachine', name: 'm1' }
  const crd = aCrd({ 'cluster.x-k8s.io/v1beta2': 'v1beta1' })
  const object: KubeObject = {
    apiVersion: 'infra.example.com/v1beta1',
    kind: 'DevMachine',
    metadata: { name: 'm1', namespace: 'default', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  }

  test('comes with its contract and kind', async () => {
    const reader = aReader({ 'customresourcedefinitions/devmachines.infra.example.com': crd, 'devmachines/m1': object })
    expect(await getExternal(reader, ref, 'default')).toMatchObject({
      object,
      contract: 'v1beta2',
      kind: { group: 'infra.example.com', version: 'v1beta1', plural: 'devmachines' },
    })
  })

  test('that does not exist is undefined', async () => {
    expect(
      await getExternal(aReader({ 'customresourcedefinitions/devmachines.infra.example.com': crd }), ref, 'default'),
    ).toBeUndefined()
  })

  test('of a kind without CustomResourceDefinition is an error other than NotFound', async () => {
    const error = await externalKind(aReader({}), ref).catch((err: unknown) => err)
    expect(error).toMatchObject({
      message:
        'failed to get CustomResourceDefinition metadata: customresourcedefinitions.apiextensions.k8s.io "devmachines.infra.example.com" not found',
    })
    expect(isReason(error, 'NotFound')).toBe(false)
  })
})
