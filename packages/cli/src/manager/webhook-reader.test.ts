import { Cluster, ClusterClass } from '@capstan/api'
import { Informer } from '@capstan/controller'
import { type ApiRequest, createClient, CustomResourceDefinition, type Kind, type KubeObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import { webhookReader } from './webhook-reader.ts'

const key = { namespace: 'default', name: 'class' }
const aClass = (observedGeneration: number, status = 'True') => ({
  metadata: { ...key, generation: 2, uid: 'cached', resourceVersion: '1' },
  status: { observedGeneration, conditions: [{ type: 'VariablesReady', status }] },
})

/**
 * Reads an object with a webhook reader. Returns the text 'cached' if the object comes from the cache, otherwise the verb and resource of
 * the request that was sent to the API server.
 */
async function read(kind: Kind, cached: object | undefined) {
  const client = createClient({
    send: ({ plural, verb }: ApiRequest) => Promise.resolve({ metadata: { uid: `${verb} ${plural}` } }),
    watch: () => Promise.reject(new Error('not watched here')),
    close() {},
  })
  const informer = new Informer(kind)
  if (cached) informer.accept({ kind: 'replaced', objects: [cached as KubeObject], resourceVersion: '1' })
  return (await webhookReader(client, () => [informer]).get(kind, key)).metadata.uid
}

test.each<[string, Kind, object | undefined, string]>([
  ['a ClusterClass in the cache is read from the cache', ClusterClass as Kind, aClass(2), 'cached'],
  [
    'a ClusterClass that has changed since it was reconciled is read from the API server',
    ClusterClass as Kind,
    aClass(1),
    'get clusterclasses',
  ],
  [
    'a ClusterClass with variables that are not ready is read from the API server',
    ClusterClass as Kind,
    aClass(2, 'False'),
    'get clusterclasses',
  ],
  ['a ClusterClass that is not in the cache is read from the API server', ClusterClass as Kind, undefined, 'get clusterclasses'],
  ['a CustomResourceDefinition in the cache is read from the cache', CustomResourceDefinition as Kind, aClass(1), 'cached'],
  [
    'a CustomResourceDefinition that is not in the cache is read from the API server',
    CustomResourceDefinition as Kind,
    undefined,
    'get customresourcedefinitions',
  ],
  ['an object of another kind is read from the API server', Cluster as Kind, aClass(2), 'get clusters'],
])('%s', async (_, kind, cached, source) => {
  expect(await read(kind, cached)).toBe(source)
})
