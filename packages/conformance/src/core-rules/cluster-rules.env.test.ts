/** Tests of the rules for core's handling of InfraCluster and ControlPlane objects. */
import { Cluster } from '@capstan/api'
import { getCondition, orAbsent, Secret, type UnknownObject, CustomResourceDefinition } from '@capstan/kube'
import { aCluster, type CoreEnv, conditionText, DevCluster, DevControlPlane } from '@capstan/testing'
import { expect } from 'vitest'
import { testRule } from './rule-test.suite.ts'

const provisioned = { initialization: { provisioned: true } }
const initialized = { initialization: { controlPlaneInitialized: true } }
const endpoint = { host: 'api.example.com', port: 6443 }

/** Creates a Cluster with its InfraCluster and control plane, both without status. */
async function createDemo(env: CoreEnv, infra: object = {}, controlPlane: object = {}): Promise<void> {
  await env.create(Cluster, 'demo', { spec: aCluster().spec })
  await env.create(DevCluster, 'demo', infra)
  await env.create(DevControlPlane, 'demo', controlPlane)
  await env.settle()
}

const cluster = (env: CoreEnv) => env.get(Cluster, 'demo')
const owned = async (env: CoreEnv) => {
  const { uid } = (await cluster(env)).metadata
  return {
    labels: { 'cluster.x-k8s.io/cluster-name': 'demo' },
    ownerReferences: [{ apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: 'demo', uid }],
  }
}

testRule('core.contract-version', async (env, contract) => {
  const crdKey = { name: 'devclusters.infra.example.com' }
  const crd = await env.client.get(CustomResourceDefinition, crdKey)
  expect(crd.metadata.labels).toEqual({ [`cluster.x-k8s.io/${contract}`]: 'v1beta1' })
  const [version] = crd.spec.versions
  const body = {
    metadata: { labels: { [`cluster.x-k8s.io/${contract}`]: 'v1beta1_v1', 'cluster.x-k8s.io/v1alpha4': 'v1alpha4' } },
    spec: { versions: [version, { ...version, name: 'v1', storage: false }] },
  }
  await env.client.patch(CustomResourceDefinition, crdKey, { type: 'merge', body })
  await createDemo(env)
  await env.patch(DevCluster, 'demo', { status: { ...provisioned, failureReason: 'Quota', failureMessage: 'none left' } })
  const { status } = await cluster(env)
  expect(status?.initialization?.infrastructureProvisioned).toBe(true)
  expect(status?.deprecated?.v1beta1?.failureMessage).toBe(
    'Failure detected from referenced resource infra.example.com/v1, Kind=DevCluster with name "demo": none left',
  )
})

testRule('core.crd-name', async (env) => {
  const crd = await env.client.get(CustomResourceDefinition, { name: 'devclusters.infra.example.com' })
  const names = { kind: 'Dispatch', plural: 'dispatchen', singular: 'dispatch', listKind: 'DispatchList' }
  await env.client.create(CustomResourceDefinition, {
    metadata: { name: 'dispatchen.infra.example.com', labels: crd.metadata.labels! },
    spec: { ...crd.spec, names },
  } as never)
  const ref = { apiGroup: 'infra.example.com', kind: 'Dispatch', name: 'demo' }
  await env.create(Cluster, 'demo', { spec: { ...aCluster().spec, infrastructureRef: ref } })
  await env.settle()
  expect((await cluster(env)).status?.initialization?.infrastructureProvisioned).not.toBe(true)
  expect(conditionText(await cluster(env), 'InfrastructureReady')).toBe(
    'Unknown InternalError: Please check controller logs for errors',
  )
})

testRule('core.no-mutations', async (env) => {
  const spec = { region: 'a', controlPlaneEndpoint: endpoint }
  await createDemo(env, { spec }, { spec: { replicas: 3, version: 'v1.34.0' } })
  const status = { ...provisioned, region: 'b' }
  await env.patch(DevCluster, 'demo', { status })
  await env.patch(DevControlPlane, 'demo', { status: initialized })
  const objects = [await env.get(DevCluster, 'demo'), await env.get(DevControlPlane, 'demo')] as unknown as UnknownObject[]
  expect(objects).toMatchObject([
    { spec, status },
    { spec: { replicas: 3, version: 'v1.34.0' }, status: initialized },
  ])
  for (const { metadata } of objects) {
    const { labels, ownerReferences, annotations, finalizers, generation } = metadata
    expect({ labels, ownerReferences }).toEqual(await owned(env))
    expect({ annotations, finalizers, generation }).toEqual({ annotations: undefined, finalizers: undefined, generation: 1 })
  }
})

testRule('core.infra-cluster.owner', async (env) => {
  await createDemo(env)
  expect((await env.get(DevCluster, 'demo')).metadata).toMatchObject(await owned(env))
})

testRule('core.control-plane.owner', async (env) => {
  await createDemo(env)
  expect((await env.get(DevControlPlane, 'demo')).metadata).toMatchObject(await owned(env))
})

testRule('core.infra-cluster.endpoint', async (env) => {
  await createDemo(env, { spec: { controlPlaneEndpoint: endpoint } })
  expect((await cluster(env)).spec.controlPlaneEndpoint).toBeUndefined()
  await env.patch(DevCluster, 'demo', { status: provisioned })
  expect((await cluster(env)).spec.controlPlaneEndpoint).toEqual(endpoint)
  await env.patch(DevCluster, 'demo', { spec: { controlPlaneEndpoint: { host: 'elsewhere', port: 1 } } })
  expect((await cluster(env)).spec.controlPlaneEndpoint).toEqual(endpoint)
})

testRule('core.control-plane.endpoint', async (env) => {
  await createDemo(env, {}, { spec: { controlPlaneEndpoint: endpoint } })
  await env.patch(DevCluster, 'demo', { status: provisioned })
  expect((await cluster(env)).spec.controlPlaneEndpoint).toBeUndefined()
  await env.patch(DevControlPlane, 'demo', { status: initialized })
  expect((await cluster(env)).spec.controlPlaneEndpoint).toEqual(endpoint)
})

testRule('core.infra-cluster.failure-domains', async (env) => {
  await createDemo(env)
  const failureDomains = [{ name: 'b' }, { name: 'a', controlPlane: true, attributes: { rack: '1' } }]
  await env.patch(DevCluster, 'demo', { status: { failureDomains } })
  expect((await cluster(env)).status?.failureDomains).toBeUndefined()
  await env.patch(DevCluster, 'demo', { status: provisioned })
  expect((await cluster(env)).status?.failureDomains).toEqual([
    { name: 'a', controlPlane: true, attributes: { rack: '1' } },
    { name: 'b', controlPlane: false },
  ])
  // In contract v1beta1 the field is a map, whose existing entries a merge patch would keep. So the field is removed first.
  await env.patch(DevCluster, 'demo', { status: { failureDomains: null } })
  expect((await cluster(env)).status?.failureDomains).toBeUndefined()
  await env.patch(DevCluster, 'demo', { status: { failureDomains: [{ name: 'c', controlPlane: true }] } })
  expect((await cluster(env)).status?.failureDomains).toEqual([{ name: 'c', controlPlane: true }])
})

testRule('core.infra-cluster.initialization', async (env) => {
  await createDemo(env)
  const state = async () => (await cluster(env)).status?.initialization?.infrastructureProvisioned
  expect(await state()).not.toBe(true)
  await env.patch(DevCluster, 'demo', { status: { initialization: { provisioned: false } } })
  expect(await state()).not.toBe(true)
  expect(conditionText(await cluster(env), 'InfrastructureReady')).toBe(
    'False NotReady: DevCluster status.initialization.provisioned is false',
  )
  await env.patch(DevCluster, 'demo', { status: provisioned })
  expect(await state()).toBe(true)
})

testRule('core.control-plane.initialization', async (env) => {
  await createDemo(env)
  const states = async () => {
    const { status } = await cluster(env)
    return [
      status?.initialization?.controlPlaneInitialized ?? false,
      conditionText({ status } as never, 'ControlPlaneInitialized'),
    ]
  }
  expect(await states()).toEqual([false, 'False NotInitialized: Control plane not yet initialized'])
  await env.patch(DevControlPlane, 'demo', { status: initialized })
  expect(await states()).toEqual([true, 'True Initialized'])
})

testRule('core.infra-cluster.conditions', async (env) => {
  await createDemo(env)
  const mirrored = async (condition: object) => {
    await env.patch(DevCluster, 'demo', { status: { conditions: [{ type: 'Ready', ...condition }] } })
    return getCondition(await cluster(env), 'InfrastructureReady')
  }
  expect(await mirrored({ status: 'False', reason: 'Quota', message: 'none left', severity: 'Error' })).toMatchObject({
    status: 'False',
    reason: 'Quota',
    message: 'none left',
  })
  expect(await mirrored({ status: 'False', severity: 'Error' })).toMatchObject({
    status: 'False',
    reason: 'NoReasonReported',
    lastTransitionTime: expect.any(String),
    observedGeneration: (await cluster(env)).metadata.generation,
  })
  // Upstream assumes that a condition that is True without a reason is a v1beta1 condition, and replaces `NoReasonReported` by `Ready`.
  expect(await mirrored({ status: 'True' })).toMatchObject({ status: 'True', reason: 'Ready' })
})

testRule('core.control-plane.conditions', async (env) => {
  await createDemo(env)
  const conditions = (status: string) =>
    ['Available', 'RollingOut', 'ScalingUp', 'ScalingDown'].map((type) => ({ type, status, reason: 'Because', message: 'seen' }))
  await env.patch(DevControlPlane, 'demo', { status: { ...initialized, conditions: conditions('True') } })
  expect(conditionText(await cluster(env), 'ControlPlaneAvailable')).toBe('True Because: seen')
  for (const type of ['RollingOut', 'ScalingUp', 'ScalingDown']) {
    expect(getCondition(await cluster(env), type)).toMatchObject({ status: 'True', message: expect.stringContaining('seen') })
  }
  await env.patch(DevControlPlane, 'demo', { status: { conditions: conditions('False') } })
  expect(conditionText(await cluster(env), 'ControlPlaneAvailable')).toBe('False Because: seen')
  for (const type of ['RollingOut', 'ScalingUp', 'ScalingDown']) {
    expect(getCondition(await cluster(env), type)).toMatchObject({ status: 'False' })
  }
})

testRule('core.infra-cluster.terminal-failures', async (env) => {
  await env.provisionCluster()
  await env.patch(DevCluster, 'demo', { status: { failureReason: 'Quota', failureMessage: 'none left' } })
  const { status } = await cluster(env)
  expect(status?.deprecated?.v1beta1).toMatchObject({
    failureReason: 'Quota',
    failureMessage:
      'Failure detected from referenced resource infra.example.com/v1beta1, Kind=DevCluster with name "demo": none left',
  })
  expect(status?.phase).toBe('Provisioned')
  expect(conditionText(await cluster(env), 'Available')).toBe('True Available')
})

testRule('core.control-plane.terminal-failures', async (env) => {
  await env.provisionCluster()
  await env.patch(DevControlPlane, 'demo', { status: { failureReason: 'Etcd', failureMessage: 'no quorum' } })
  const { status } = await cluster(env)
  expect(status?.deprecated?.v1beta1).toMatchObject({
    failureReason: 'Etcd',
    failureMessage:
      'Failure detected from referenced resource controlplane.example.com/v1beta1, Kind=DevControlPlane with name "demo": no quorum',
  })
  expect(status?.phase).toBe('Provisioned')
  expect(conditionText(await cluster(env), 'Available')).toBe('True Available')
})

testRule('core.infra-cluster.externally-managed', async (env) => {
  const annotations = { 'cluster.x-k8s.io/managed-by': 'somebody' }
  await createDemo(env, { metadata: { annotations }, spec: { controlPlaneEndpoint: endpoint } })
  await env.patch(DevCluster, 'demo', { status: { ...provisioned, failureDomains: [{ name: 'a', controlPlane: true }] } })
  expect(await cluster(env)).toMatchObject({
    spec: { controlPlaneEndpoint: endpoint },
    status: { initialization: { infrastructureProvisioned: true }, failureDomains: [{ name: 'a', controlPlane: true }] },
  })
  expect((await env.get(DevCluster, 'demo')).metadata).toMatchObject({ annotations, ...(await owned(env)) })
})

testRule('core.control-plane.replicas', async (env) => {
  await env.provisionCluster()
  const status = { replicas: 3, readyReplicas: 2, availableReplicas: 2, upToDateReplicas: 1 }
  await env.patch(DevControlPlane, 'demo', { spec: { replicas: 3 }, status })
  expect((await cluster(env)).status?.controlPlane).toEqual({ desiredReplicas: 3, ...status })
})

testRule('core.control-plane.version', async (env) => {
  await env.provisionCluster()
  const versions = [
    { version: 'v1.33.0', replicas: 2 },
    { version: 'v1.34.0', replicas: 1 },
  ]
  await env.patch(DevControlPlane, 'demo', { spec: { version: 'v1.34.0' }, status: { versions } })
  expect((await cluster(env)).status?.controlPlane?.versions).toEqual(versions)
})

testRule('core.control-plane.kubeconfig', async (env) => {
  await createDemo(env)
  await env.patch(DevCluster, 'demo', { status: provisioned })
  await env.patch(DevControlPlane, 'demo', { status: initialized })
  await env.advance(30_000)
  expect(await orAbsent(env.get(Secret, 'demo-kubeconfig'))).toBeUndefined()
  expect(getCondition(await cluster(env), 'RemoteConnectionProbe')).toMatchObject({ status: 'False' })
  await env.create(Secret, 'demo-kubeconfig', {
    type: 'cluster.x-k8s.io/secret',
    metadata: { labels: { 'cluster.x-k8s.io/cluster-name': 'demo' } },
    stringData: { value: 'how to reach it' },
  })
  await env.advance(30_000)
  expect(conditionText(await cluster(env), 'RemoteConnectionProbe')).toBe('True ProbeSucceeded')
})
