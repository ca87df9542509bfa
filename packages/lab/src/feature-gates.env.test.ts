/** Management clusters with disabled feature gates. */
import { readFileSync } from 'node:fs'
import { Cluster, pluralOf } from '@capstan/api'
import { getCondition, minutes, orAbsent, type UnknownObject, unknownKind } from '@capstan/kube'
import { type ManagementEnv, managementEnv } from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'

let env: ManagementEnv
afterEach(() => env.close())

const key = { namespace: 'default', name: 'demo' }

/** Creates the demo's class, without its delays. */
async function createClass(): Promise<void> {
  const text = readFileSync(new URL('../demo/class.yaml', import.meta.url), 'utf8').replaceAll(/\d+ms/g, '0s')
  for (const document of parseAllDocuments(text)) {
    const object = document.toJS() as UnknownObject
    await env.client.create(unknownKind({ ...object, plural: pluralOf(object.kind) }), object)
  }
}

const workers = { machineDeployments: [{ class: 'worker', name: 'a', replicas: 1 }] }
const topology = { classRef: { name: 'demo' }, version: 'v1.36.0', controlPlane: { replicas: 1 }, workers }
const aCluster = { metadata: key, spec: { topology } }

test('without RuntimeSDK a Cluster with a topology is created, upgraded and deleted', async () => {
  env = await managementEnv({ gates: { RuntimeSDK: false } })
  await createClass()
  await env.client.create(Cluster, aCluster)
  await env.advance(minutes(5))
  expect(getCondition(await env.client.get(Cluster, key), 'Available')?.status).toBe('True')

  await env.client.patch(Cluster, key, { type: 'merge', body: { spec: { topology: { version: 'v1.37.0' } } } })
  await env.advance(minutes(5))
  const { status } = await env.client.get(Cluster, key)
  expect(status?.controlPlane?.versions).toEqual([{ version: 'v1.37.0', replicas: 1 }])
  expect(status?.workers?.versions).toEqual([{ version: 'v1.37.0', replicas: 1 }])

  await env.client.delete(Cluster, key)
  await env.advance(minutes(5))
  expect(await orAbsent(env.client.get(Cluster, key))).toBeUndefined()
  expect(env.hooks).toEqual([])
})
