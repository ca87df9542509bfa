import { expect, it } from 'vitest'
import { hookCatalog } from './hooks/catalog.ts'
import { hooksOpenApi } from './openapi.ts'

const document = hooksOpenApi(hookCatalog, 'v1.14.0')
const group = '/hooks.runtime.cluster.x-k8s.io/v1alpha1'

it('has a path for each hook, with the name of the handler as its last part', () => {
  expect(Object.keys(document.paths)).toHaveLength(17)
  expect(document.paths[`${group}/discovery`]).toMatchObject({ post: { operationId: 'hooksRuntimeClusterV1alpha1Discovery' } })
  expect(document.paths[`${group}/aftercontrolplaneupgrade/{name}`]).toMatchObject({
    post: {
      tags: ['Lifecycle Hooks'],
      operationId: 'hooksRuntimeClusterV1alpha1AfterControlPlaneUpgrade',
      parameters: [{ name: 'name', in: 'path', required: true, schema: { type: 'string' } }],
    },
  })
})

it('says everything that it refers to', () => {
  const text = JSON.stringify(document)
  const { schemas } = document.components
  const referred = [...text.matchAll(/#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name!)
  expect(new Set(referred)).toEqual(new Set(Object.keys(schemas)))
  expect(Object.values(schemas).flatMap((schema) => Object.keys(schema).filter((name) => name.startsWith('x-')))).toEqual([])
})

it('is the same whatever the order of declaration', () => {
  expect(JSON.stringify(hooksOpenApi([...hookCatalog].reverse(), 'v1.14.0'))).toBe(JSON.stringify(document))
})

it('shows the shapes of requests and responses down to the Cluster', () => {
  const { schemas } = document.components
  const request = schemas['sigs.k8s.io.cluster-api.api.runtime.hooks.v1alpha1.BeforeClusterUpgradeRequest']!
  expect(request.required).toEqual(['apiVersion', 'kind', 'cluster', 'fromKubernetesVersion', 'toKubernetesVersion'])
  expect(request.properties?.['cluster']?.properties?.['spec']?.properties?.['topology']?.type).toBe('object')
  expect(request.properties?.['cluster']?.properties?.['status']).toBeUndefined()
})
