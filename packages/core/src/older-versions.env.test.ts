/** Tests that clients can read and write objects in v1beta1 on a server that stores v1beta2. */
import { Cluster, Machine } from '@capstan/api'
import { type UnknownObject, unknownKind } from '@capstan/kube'
import { aCluster, type CoreEnv, coreEnv, DevCluster } from '@capstan/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'

const OldCluster = unknownKind({ apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Cluster', plural: 'clusters' })
const OldMachine = unknownKind({ apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Machine', plural: 'machines' })
const ConversionData = 'cluster.x-k8s.io/conversion-data'
const key = { namespace: 'default', name: 'demo' }

let env: CoreEnv
beforeEach(async () => {
  env = await coreEnv()
})
afterEach(() => env.close())

const old = (): Promise<UnknownObject> => env.client.get(OldCluster, key)

test('a Cluster created in v1beta1 is reconciled, and can be read in both versions', async () => {
  await env.create(DevCluster, 'demo', { spec: {} })
  const infrastructureRef = { apiVersion: `${DevCluster.group}/${DevCluster.version}`, kind: 'DevCluster', ...key }
  await env.client.create(OldCluster, { metadata: key, spec: { infrastructureRef } } as never)
  await env.settle()
  const stored = await env.get(Cluster, 'demo')
  expect(stored.spec.infrastructureRef).toEqual({ apiGroup: DevCluster.group, kind: 'DevCluster', name: 'demo' })
  expect(stored.metadata.finalizers).toEqual(['cluster.cluster.x-k8s.io'])

  const oldCluster = await old()
  expect(oldCluster).toMatchObject({
    apiVersion: 'cluster.x-k8s.io/v1beta1',
    metadata: { uid: stored.metadata.uid, resourceVersion: stored.metadata.resourceVersion },
    spec: { infrastructureRef },
    status: { phase: stored.status?.phase, infrastructureReady: false, v1beta2: { conditions: stored.status?.conditions } },
  })
  const { spec, status } = JSON.parse(oldCluster.metadata.annotations![ConversionData]!) as Cluster
  expect({ spec, status }).toEqual({ spec: stored.spec, status: stored.status })
})

test('an update by a v1beta1 client keeps all fields of the spec, and the annotation conversion-data is not stored', async () => {
  await env.create(Cluster, 'demo', { spec: { ...aCluster().spec, paused: false } })
  await env.settle()
  const before = await env.get(Cluster, 'demo')
  const oldCluster = structuredClone(await old())
  oldCluster.metadata.labels = { team: 'a' }
  await env.client.update(OldCluster, oldCluster)
  await env.settle()
  const after = await env.get(Cluster, 'demo')
  expect(after.spec).toEqual(before.spec)
  expect(after.metadata.labels).toEqual({ team: 'a' })
  expect(after.metadata.annotations).toBeUndefined()
})

test('a reference to a kind without CustomResourceDefinition cannot be converted to v1beta1, and the error names the CustomResourceDefinition', async () => {
  const ref = { apiGroup: 'infrastructure.example.com', kind: 'Nothing', name: 'm1' }
  const spec = { clusterName: 'demo', bootstrap: { dataSecretName: 'm1' }, infrastructureRef: ref }
  await env.create(Machine, 'm1', { spec })
  await expect(env.client.get(OldMachine, { namespace: 'default', name: 'm1' })).rejects.toThrow(
    'conversion webhook for cluster.x-k8s.io/v1beta2, Kind=Machine failed: failed to convert object: failed to get CustomResourceDefinition metadata: customresourcedefinitions.apiextensions.k8s.io "nothings.infrastructure.example.com" not found',
  )
})
