/** Management clusters with disabled feature gates. */
import { readFileSync } from 'node:fs'
import { Cluster, ClusterClass, ExtensionConfig, MachinePool, pluralOf } from '@capstan/api'
import type { RuntimeClient } from '@capstan/extension'
import { draft, getCondition, minutes, orAbsent, type UnknownObject, unknownKind } from '@capstan/kube'
import { type ManagementEnv, managementEnv } from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'

let env: ManagementEnv
afterEach(() => env.close())

const key = { namespace: 'default', name: 'demo' }

/** Creates the ClusterClass and the templates of `demo/class.yaml`, with delays of 0 s. */
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
const infrastructure = { apiGroup: 'infrastructure.capstan.dev', kind: 'LocalMachinePool', name: 'pool' }

test('without RuntimeSDK a Cluster with a topology is created, upgraded and deleted, and no hook is called', async () => {
  const runtime: RuntimeClient = {
    ready: true,
    handlersFor: async () => ['a.x'],
    call: async () => ({ status: 'Success' }) as never,
    callAll: async () => ({ status: 'Success', retryAfterSeconds: 0 }) as never,
  }
  env = await managementEnv({ runtime, gates: { RuntimeSDK: false } })
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

test('admission rejects creates and updates that need a disabled gate, and allows deletes', async () => {
  env = await managementEnv({})
  await createClass()
  await env.client.create(Cluster, aCluster)
  const extension = { metadata: { name: 'x' }, spec: { clientConfig: { url: 'https://127.0.0.1:9443' } } }
  const { clock, stores } = env
  await env.close()

  env = await managementEnv({ clock, stores, gates: { ClusterTopology: false, MachinePool: false, RuntimeSDK: false } })
  const onlyWith = (gate: string) => `can be set only if the ${gate} feature flag is enabled`
  const { client } = env
  const template = { spec: { clusterName: 'demo', bootstrap: { dataSecretName: 'x' }, infrastructureRef: infrastructure } }
  const pool = { metadata: { ...key, name: 'pool' }, spec: { clusterName: 'demo', template } }
  await expect(client.create(MachinePool, pool)).rejects.toMatchObject({
    reason: 'Forbidden',
    message: `spec: Forbidden: ${onlyWith('MachinePool')}`,
  })
  await expect(client.create(ExtensionConfig, extension)).rejects.toThrow(`spec: Forbidden: ${onlyWith('RuntimeSDK')}`)
  const clusterClass = await client.get(ClusterClass, key)
  const copy = { metadata: { ...key, name: 'copy' }, spec: clusterClass.spec }
  await expect(client.create(ClusterClass, copy)).rejects.toThrow(`spec: Forbidden: ${onlyWith('ClusterTopology')}`)
  const body = { metadata: { labels: { a: 'b' } } }
  await expect(client.patch(ClusterClass, key, { type: 'merge', body })).rejects.toThrow(onlyWith('ClusterTopology'))
  await expect(client.patch(Cluster, key, { type: 'merge', body })).rejects.toThrow(
    `Cluster.cluster.x-k8s.io "demo" is invalid: spec.topology: Forbidden: ${onlyWith('ClusterTopology')}`,
  )

  await client.delete(Cluster, key)
  await env.advance(minutes(5))
  expect(await orAbsent(client.get(Cluster, key))).toBeUndefined()
  await client.delete(ClusterClass, key)
})

test('without RuntimeSDK admission rejects external patches', async () => {
  env = await managementEnv({ gates: { RuntimeSDK: false } })
  await createClass()
  const { spec } = draft(await env.client.get(ClusterClass, key))
  const patches = [...(spec.patches ?? []), { name: 'net', external: { generatePatchesExtension: 'net.ext' } }]
  await expect(env.client.patch(ClusterClass, key, { type: 'merge', body: { spec: { patches } } as never })).rejects.toThrow(
    `spec.patches[${patches.length - 1}].external: Forbidden: patch.external can be used only if the RuntimeSDK feature flag is enabled`,
  )
})
