import { CustomResourceDefinition, type Kind, type KubeObject, notFound, type Reader } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { observeExternal } from './observe.ts'

const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'devmachines.infra.example.com', labels: { 'cluster.x-k8s.io/v1beta2': 'v1' } },
} as unknown as KubeObject
const aMachine = (resourceVersion: string) =>
  ({
    apiVersion: 'infra.example.com/v1',
    kind: 'DevMachine',
    metadata: { name: 'm1', namespace: 'default', resourceVersion },
  }) as unknown as KubeObject
const ref = { apiGroup: 'infra.example.com', kind: 'DevMachine', name: 'm1' }

/**
 * Returns a function that observes `ref` with a cache that contains the CustomResourceDefinition and `cached`, and an API server that
 * contains `stored`. Also returns the plurals of the kinds that the function watches, and of those that it reads from the API server.
 */
function anObservation({ cached, stored }: { cached?: KubeObject; stored?: KubeObject }) {
  const watched: string[] = []
  const read: string[] = []
  const { signal } = new AbortController()
  const get: Reader['get'] = (kind, { name }, options) => {
    read.push(kind.plural)
    expect(options?.signal).toBe(signal)
    return stored ? Promise.resolve(stored as never) : Promise.reject(notFound(kind, name))
  }
  const context = {
    cache: {
      get: (kind: Kind) => Promise.resolve(kind === CustomResourceDefinition ? crd : undefined),
      peek: (kind: Kind) => {
        expect(watched, 'the cache is read only after it has synced').toContain(kind.plural)
        return cached
      },
    },
    client: { get },
    signal,
    async watch(kind: Kind) {
      await Promise.resolve()
      watched.push(kind.plural)
    },
  } as never
  const observe = () => observeExternal(context, ref, 'default', () => [])
  return { observe, watched, read }
}

describe('an observed object', () => {
  test('comes from the cache; its kind and CustomResourceDefinitions are watched', async () => {
    const { observe, watched, read } = anObservation({ cached: aMachine('1') })
    expect(await observe()).toMatchObject({ contract: 'v1beta2', object: { metadata: { resourceVersion: '1' } } })
    expect({ watched, read }).toEqual({ watched: ['customresourcedefinitions', 'devmachines'], read: [] })
  })

  test('that the cache lacks is read from the API server', async () => {
    const { observe, read } = anObservation({ stored: aMachine('2') })
    expect(await observe()).toMatchObject({ object: { metadata: { resourceVersion: '2' } } })
    expect(read).toEqual(['devmachines'])
  })

  test('is absent if neither the cache nor the API server has it', async () => {
    const { observe, read } = anObservation({})
    expect(await observe()).toBeUndefined()
    expect(read).toEqual(['devmachines'])
  })
})
