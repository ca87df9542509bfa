/**
 * Tests the local kinds with core. The tests of `contract …` run in both contract versions: `contract-twin.ts` of `@capstan/testing` makes
 * the kinds of contract v1beta1 from those of v1beta2.
 */
import type { ContractVersion } from '@capstan/api/contract'
import { Cluster, Machine, MachinePool, ManagedByAnnotation } from '@capstan/api'
import { isTrue, type Kind, type KubeObject, minutes, Node, Secret, seconds } from '@capstan/kube'
import { conditionText, localProvider, type ProviderEnv, providerEnv } from '@capstan/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { parseBootstrapData } from './bootstrap/data.ts'
import { LocalBootstrapConfig } from './kinds/local-bootstrap-config.ts'
import { LocalCluster } from './kinds/local-cluster.ts'
import { LocalControlPlane } from './kinds/local-control-plane.ts'
import { LocalMachine, LocalMachineTemplate } from './kinds/local-machine.ts'
import { LocalMachinePool } from './kinds/local-machine-pool.ts'

const named = (name: string) => ({ metadata: { name, namespace: 'default' } })
const key = (name: string) => ({ name, namespace: 'default' })
const ref = (group: string, kind: string, name: string) => ({ apiGroup: `${group}.capstan.dev`, kind, name })
const failure = (stage: string) => ({ simulated: { failure: { at: stage, message: `cannot: ${stage}`, reason: 'Broken' } } })

describe.each<ContractVersion>(['v1beta2', 'v1beta1'])('contract %s', (contract) => {
  let env: ProviderEnv
  afterEach(() => env.close())

  interface Setup {
    readonly cluster?: object
    readonly annotations?: { [name: string]: string }
    readonly controlPlane?: object
    readonly endpoint?: { host: string; port: number }
  }

  async function createCluster({ cluster = {}, annotations = {}, controlPlane = {}, endpoint }: Setup = {}): Promise<void> {
    env = await providerEnv({ ...localProvider(), contract })
    const { client } = env
    const template = ref('infrastructure', 'LocalMachineTemplate', 'machines')
    const withMachines = {
      replicas: 1,
      machineTemplate:
        contract === 'v1beta2'
          ? { spec: { infrastructureRef: template } }
          : { infrastructureRef: { apiVersion: `${template.apiGroup}/v1alpha1`, kind: template.kind, name: template.name } },
    }
    await client.create(LocalMachineTemplate, { ...named('machines'), spec: { template: { spec: {} } } })
    await client.create(LocalCluster, { metadata: { ...named('demo').metadata, annotations }, spec: cluster })
    await client.create(LocalControlPlane, {
      ...named('demo'),
      spec: {
        version: 'v1.36.0',
        ...('hosted' in controlPlane ? {} : withMachines),
        ...controlPlane,
      } as never,
    })
    await client.create(Cluster, {
      ...named('demo'),
      spec: {
        ...(endpoint ? { controlPlaneEndpoint: endpoint } : {}),
        infrastructureRef: ref('infrastructure', 'LocalCluster', 'demo'),
        controlPlaneRef: ref('controlplane', 'LocalControlPlane', 'demo'),
      },
    })
    await env.advance(seconds(20))
  }

  const cluster = () => env.client.get(Cluster, key('demo'))
  const patch = <T extends KubeObject>(kind: Kind<T>, name: string, body: object) =>
    env.client.patch(kind, key(name), { type: 'merge', body })
  /** Returns the deprecated status of a Cluster, Machine or MachinePool, into which core copies the failure of the provider's object. */
  const legacyFailure = ({ status }: { status?: { deprecated?: { v1beta1?: object } } }) => status?.deprecated?.v1beta1

  test('a terminal failure of a LocalCluster reaches its Cluster', async () => {
    await createCluster({ cluster: failure('provisioning') })
    expect((await env.client.get(LocalCluster, key('demo'))).status).toMatchObject({
      failureReason: 'Broken',
      failureMessage: 'cannot: provisioning',
    })
    expect(legacyFailure(await cluster())).toMatchObject({ failureReason: 'Broken' })
  })

  test('a terminal failure of a LocalControlPlane reaches its Cluster', async () => {
    await createCluster({ controlPlane: failure('initialization') })
    expect((await env.client.get(LocalControlPlane, key('demo'))).status).toMatchObject({
      failureReason: 'Broken',
      failureMessage: 'cannot: initialization',
    })
    expect(legacyFailure(await cluster())).toMatchObject({ failureReason: 'Broken' })
  })

  test('terminal failures of a LocalMachine and a LocalBootstrapConfig reach their Machines', async () => {
    await createCluster()
    await createWorker('broken-machine', { machine: failure('provisioning') })
    await createWorker('broken-config', { config: failure('data') })
    await env.advance(seconds(20))
    for (const [name, message] of [
      ['broken-machine', 'cannot: provisioning'],
      ['broken-config', 'cannot: data'],
    ] as const) {
      const copied = legacyFailure(await env.client.get(Machine, key(name)))
      expect(copied).toMatchObject({ failureReason: 'Broken', failureMessage: expect.stringContaining(message) })
    }
  })

  test('a terminal failure of a LocalMachinePool reaches its MachinePool', async () => {
    await createCluster()
    await createPool(failure('provisioning'))
    await env.advance(seconds(20))
    const copied = legacyFailure(await env.client.get(MachinePool, key('pool')))
    expect(copied).toMatchObject({ failureReason: 'Broken', failureMessage: expect.stringContaining('cannot: provisioning') })
  })

  test('an externally managed LocalCluster is not reconciled, and core uses the endpoint and the status that an external system writes', async () => {
    await createCluster({ annotations: { [ManagedByAnnotation]: 'terraform' } })
    const before = await env.client.get(LocalCluster, key('demo'))
    expect([before.spec, before.status, before.metadata.finalizers]).toEqual([{}, undefined, undefined])

    await patch(LocalCluster, 'demo', { spec: { controlPlaneEndpoint: { host: '127.0.0.1', port: 6443 } } })
    const status = contract === 'v1beta2' ? { initialization: { provisioned: true } } : { ready: true }
    await env.client.patch(LocalCluster, key('demo'), { type: 'merge', body: { status } }, { subresource: 'status' })
    await env.advance(seconds(20))
    expect(await cluster()).toMatchObject({
      spec: { controlPlaneEndpoint: { host: '127.0.0.1', port: 6443 } },
      status: { initialization: { infrastructureProvisioned: true, controlPlaneInitialized: true } },
    })
    expect((await env.client.get(LocalCluster, key('demo'))).status).toEqual(status)
  })

  test('an endpoint that the user has set in the Cluster is kept, and is copied to the LocalCluster', async () => {
    const endpoint = { host: 'lb.example.com', port: 443 }
    await createCluster({ endpoint })
    expect((await cluster()).spec.controlPlaneEndpoint).toEqual(endpoint)
    expect((await env.client.get(LocalCluster, key('demo'))).spec?.controlPlaneEndpoint).toEqual(endpoint)
  })

  test('an added failure domain is copied to the Cluster', async () => {
    await createCluster()
    const names = async () => (await cluster()).status?.failureDomains?.map(({ name }) => name)
    expect(await names()).toEqual(['a', 'b', 'c'])
    // Only adds a failure domain: the status field of contract v1beta1 is a map, and a merge patch with a map removes no entries.
    const failureDomains = ['a', 'b', 'c', 'd'].map((name) => ({ name, controlPlane: true }))
    await patch(LocalCluster, 'demo', { spec: { failureDomains } })
    await env.advance(seconds(5))
    expect(await names()).toEqual(['a', 'b', 'c', 'd'])
  })

  test('minReadySeconds propagates to control plane Machines without a rollout, and delays the availability of new Machines', async () => {
    await createCluster()
    const machines = async () => (await env.client.list(Machine, { namespace: 'default' })).items
    const [before] = await machines()
    await patch(LocalControlPlane, 'demo', { spec: { machineTemplate: { spec: { minReadySeconds: 60 } } } })
    await env.advance(seconds(5))
    const [after, ...otherMachines] = await machines()
    expect(otherMachines).toEqual([])
    expect(after).toMatchObject({ metadata: { uid: before!.metadata.uid }, spec: { minReadySeconds: 60 } })

    await patch(LocalControlPlane, 'demo', { spec: { replicas: 3 } })
    await env.advance(seconds(40))
    const { status } = await env.client.get(LocalControlPlane, key('demo'))
    expect(status).toMatchObject({ replicas: 3, readyReplicas: 3 })
    const available = async () => (await machines()).filter((machine) => isTrue(machine, 'Available')).length
    expect(await available()).toBe(1)
    await env.advance(minutes(1))
    expect(await available()).toBe(3)
  })

  async function createPool(pool: object, config: object = {}): Promise<void> {
    await env.client.create(LocalMachinePool, { ...named('pool'), spec: pool })
    await env.client.create(LocalBootstrapConfig, { ...named('pool'), spec: config })
    await env.client.create(MachinePool, {
      ...named('pool'),
      spec: {
        clusterName: 'demo',
        replicas: 1,
        template: {
          spec: {
            clusterName: 'demo',
            version: 'v1.36.0',
            bootstrap: { configRef: ref('bootstrap', 'LocalBootstrapConfig', 'pool') },
            infrastructureRef: ref('infrastructure', 'LocalMachinePool', 'pool'),
          },
        },
      },
    })
  }

  async function createWorker(name: string, { machine = {}, config = {} } = {}): Promise<void> {
    await env.client.create(LocalMachine, { ...named(name), spec: machine })
    await env.client.create(LocalBootstrapConfig, { ...named(name), spec: config })
    await env.client.create(Machine, {
      ...named(name),
      spec: {
        clusterName: 'demo',
        version: 'v1.36.0',
        infrastructureRef: ref('infrastructure', 'LocalMachine', name),
        bootstrap: { configRef: ref('bootstrap', 'LocalBootstrapConfig', name) },
      },
    })
  }
  const worker = () => env.client.get(Machine, key('worker'))

  test('a hosted control plane has no Machines, supplies the endpoint, accepts workers, is reachable after a restart, and can be upgraded and deleted', async () => {
    await createCluster({ cluster: { withoutEndpoint: true }, controlPlane: { hosted: true } })
    expect((await env.client.get(LocalCluster, key('demo'))).spec?.controlPlaneEndpoint).toBeUndefined()
    expect((await env.client.get(LocalControlPlane, key('demo'))).status).toMatchObject({
      externalManagedControlPlane: true,
      version: 'v1.36.0',
      versions: [{ version: 'v1.36.0' }],
    })
    expect(await cluster()).toMatchObject({
      spec: { controlPlaneEndpoint: { host: '127.0.0.1', port: 6443 } },
      status: { initialization: { controlPlaneInitialized: true } },
    })
    expect(isTrue(await cluster(), 'ControlPlaneAvailable')).toBe(true)
    expect((await env.client.list(Machine, { namespace: 'default' })).items).toEqual([])

    await createWorker('worker')
    await env.advance(seconds(20))
    expect(await worker()).toMatchObject({ status: { phase: 'Running', nodeRef: { name: 'worker' } } })

    await patch(Cluster, 'demo', { spec: { paused: true } })
    await env.advance(seconds(5))
    await env.restart()
    await env.advance(minutes(2))
    expect(isTrue(await cluster(), 'RemoteConnectionProbe')).toBe(true)

    await patch(Cluster, 'demo', { spec: { paused: null } })
    await patch(LocalControlPlane, 'demo', { spec: { version: 'v1.37.0' } })
    await env.advance(seconds(20))
    expect((await cluster()).status?.controlPlane?.versions).toMatchObject([{ version: 'v1.37.0' }])

    await env.client.delete(Cluster, key('demo'))
    await env.advance(minutes(2))
    for (const kind of [Cluster, Machine, LocalControlPlane, LocalCluster] as readonly Kind[]) {
      expect((await env.client.list(kind, { namespace: 'default' })).items).toEqual([])
    }
  })

  const node = async () => {
    const kubeconfig = (await env.client.get(Secret, key('demo-kubeconfig'))).data!['value']!
    return (await env.connect(atob(kubeconfig))).get(Node, { name: 'worker' })
  }
  const dataSecret = (name = 'worker') => env.client.get(Secret, key(name))
  const text = async (field: string, name?: string) => atob((await dataSecret(name)).data![field]!)
  const expiry = async (name?: string) =>
    Date.parse(parseBootstrapData(await text('value', name), await text('format', name))!.expires ?? '')
  const nodeProvisioned = async () => conditionText(await env.client.get(LocalMachine, key('worker')), 'NodeProvisioned')

  test.each([
    ['in the default format', undefined],
    ['in the format cloud-config', 'cloud-config'],
    ['in the format ignition', 'ignition'],
  ] as const)('a machine boots from bootstrap data %s', async (_, format) => {
    await createCluster({ controlPlane: { hosted: true } })
    await createWorker('worker', {
      config: { ...(format ? { format } : {}), nodeLabels: { 'node.cluster.x-k8s.io/tier': 'blue' } },
    })
    await env.advance(seconds(20))
    const { uid } = (await env.client.get(LocalBootstrapConfig, key('worker'))).metadata
    const secret = await dataSecret()
    expect(secret).toMatchObject({
      type: 'cluster.x-k8s.io/secret',
      metadata: {
        labels: { 'cluster.x-k8s.io/cluster-name': 'demo' },
        ownerReferences: [
          { apiVersion: 'bootstrap.capstan.dev/v1alpha1', kind: 'LocalBootstrapConfig', name: 'worker', uid, controller: true },
        ],
      },
    })
    expect(Object.keys(secret.data!).toSorted()).toEqual(['format', 'value'])
    expect(await text('format')).toBe(format ?? 'cloud-config')
    expect((await env.client.get(LocalBootstrapConfig, key('worker'))).status?.dataSecretName).toBe('worker')
    expect((await worker()).status?.nodeRef).toEqual({ name: 'worker' })
    expect((await node()).metadata.labels).toMatchObject({ 'node.cluster.x-k8s.io/tier': 'blue' })
  })

  test('data are renewed at half of their TTL until the Machine has its Node, and not afterwards', async () => {
    await createCluster({ controlPlane: { hosted: true } })
    await createWorker('worker', { config: { ttlSeconds: 240 }, machine: { simulated: { nodeDelay: '9m' } } })
    await env.advance(seconds(5))
    const first = await expiry()
    await env.advance(minutes(2))
    expect((await expiry()) - first).toBe(minutes(2))
    await env.restart()
    await env.advance(minutes(2))
    expect((await expiry()) - first).toBe(minutes(4))
    await env.advance(minutes(6))
    expect(await nodeProvisioned()).toBe('True Provisioned')

    const { resourceVersion } = (await dataSecret()).metadata
    await env.advance(minutes(30))
    expect((await dataSecret()).metadata.resourceVersion).toBe(resourceVersion)
  })

  // Upstream: DefaultTokenTTL of the kubeadm bootstrap provider.
  test.each([
    ['15 minutes by default', {}, minutes(15)],
    ['not limited when ttlSeconds is 0', { ttlSeconds: 0 }, Number.NaN],
  ])('the TTL is %s', async (_, config, ttl) => {
    await createCluster({ controlPlane: { hosted: true } })
    await createWorker('worker', { config, machine: { simulated: { nodeDelay: '2h' } } })
    const now = env.clock.now()
    await env.settle()
    expect((await expiry()) - now).toBe(ttl)
    await env.advance(minutes(61))
    expect(Number.isNaN(ttl) || (await expiry()) > env.clock.now()).toBe(true)
  })

  test('the data of the first control plane machine, which joins no existing cluster, do not expire', async () => {
    await createCluster()
    const [first] = (await env.client.list(Machine, { namespace: 'default' })).items
    expect(await expiry(first!.metadata.name)).toBeNaN()
  })

  test('a machine whose bootstrap data have expired does not join until the data are renewed', async () => {
    await createCluster({ controlPlane: { hosted: true } })
    await createWorker('worker', { config: { ttlSeconds: 240 }, machine: { simulated: { nodeDelay: '9m' } } })
    await env.advance(seconds(5))
    const setPaused = (value: string | null) =>
      patch(LocalBootstrapConfig, 'worker', { metadata: { annotations: { 'cluster.x-k8s.io/paused': value } } })
    await setPaused('')
    const expires = new Date(await expiry()).toISOString()
    await env.advance(minutes(10))
    expect(await nodeProvisioned()).toBe(`False BootstrapDataExpired: Bootstrap data of Secret worker expired at ${expires}`)
    expect(conditionText(await worker(), 'InfrastructureReady')).toContain(expires)
    expect((await worker()).status?.nodeRef).toBeUndefined()

    await setPaused(null)
    await env.advance(seconds(20))
    expect((await worker()).status?.nodeRef).toEqual({ name: 'worker' })
  })

  test('the data of a MachinePool are renewed as long as the pool exists, so that machines of a later scale-up can join', async () => {
    await createCluster({ controlPlane: { hosted: true } })
    await createPool({}, { ttlSeconds: 240 })
    await env.advance(minutes(30))
    expect(await expiry('pool')).toBeGreaterThan(env.clock.now())
    await patch(MachinePool, 'pool', { spec: { replicas: 2 } })
    await env.advance(seconds(30))
    expect((await env.client.get(MachinePool, key('pool'))).status).toMatchObject({ readyReplicas: 2 })
  })

  test('a control plane with Machines supplies the endpoint of its spec', async () => {
    const controlPlaneEndpoint = { host: 'control-plane.example.com', port: 443 }
    await createCluster({ cluster: { withoutEndpoint: true }, controlPlane: { controlPlaneEndpoint } })
    expect(await cluster()).toMatchObject({
      spec: { controlPlaneEndpoint },
      status: { initialization: { controlPlaneInitialized: true } },
    })
  })
})

test.each([
  [
    'that is hosted and has replicas',
    { hosted: true, replicas: 3 },
    'spec.replicas: Forbidden: cannot be set, as a hosted control plane has no Machines',
  ],
  ['that is not hosted and has no machineTemplate', {}, 'spec.machineTemplate: Required value: is required'],
])('a LocalControlPlane %s is rejected', async (_, spec, message) => {
  const env = await providerEnv(localProvider())
  const created = env.client.create(LocalControlPlane, { ...named('demo'), spec: { version: 'v1.36.0', ...spec } })
  await expect(created).rejects.toThrow(message)
  await env.close()
})
