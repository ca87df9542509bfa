/** Tests of the contract rules about objects that core creates and changes for topologies and for MachineDeployments. */
import { Cluster, ClusterClass, coreKinds, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import type { ContractVersion } from '@capstan/api/contract'
import { controller } from '@capstan/controller'
import {
  createClusterClassController,
  createMachineDeploymentController,
  createMachineSetController,
  createTopologyController,
} from '@capstan/core'
import {
  type ApiRequest,
  type DeclaredKind,
  seconds,
  StatusError,
  type UnknownObject,
  VirtualClock,
  withSend,
} from '@capstan/kube'
import {
  type CoreEnv,
  coreEnv,
  DevCluster,
  DevClusterTemplate,
  DevConfig,
  DevConfigTemplate,
  DevControlPlane,
  DevControlPlaneTemplate,
  devKinds,
  DevMachine,
  DevMachineTemplate,
  devTemplateKinds,
  scriptedRuntime,
} from '@capstan/testing'
import { expect } from 'vitest'
import { testRule } from './rule-test.suite.ts'

const apply = 'application/apply-patch+yaml'
const dryRunAnnotation = 'topology.cluster.x-k8s.io/dry-run'

/** Reports whether a request is a dry run with the annotation by which webhooks of providers recognize the dry runs of core. */
const isAnnotatedDryRun = ({ options, body }: ApiRequest): boolean =>
  options?.dryRun === true && (body as UnknownObject).metadata.annotations?.[dryRunAnnotation] !== undefined

/** Requests of this test that apply templates in a dry run with `dryRunAnnotation`. */
let dryRuns: ApiRequest[] = []

/**
 * Starts core with the controllers of topologies and MachineDeployments. As a provider's webhook does, rejects an apply that changes the spec
 * of an applied template, except in a dry run with `dryRunAnnotation`. The test changes the templates of the class by merge patches, which
 * are accepted.
 */
async function topologyEnv(contract: ContractVersion): Promise<CoreEnv> {
  const clock = new VirtualClock()
  const runtime = scriptedRuntime({})
  dryRuns = []
  const appliedSpecs = new Map<string, string>()
  return coreEnv({
    contract,
    clock,
    kinds: [...coreKinds, ...devKinds, ...devTemplateKinds],
    furtherControllers: [
      createClusterClassController({ runtime }),
      createTopologyController({ runtime, clock }),
      controller(createMachineDeploymentController()),
      controller(createMachineSetController()),
    ],
    between: (transport) =>
      withSend(transport, async (request, signal) => {
        if (request.patchType !== apply || !request.plural.endsWith('templates')) return transport.send(request, signal)
        if (isAnnotatedDryRun(request)) dryRuns.push(request)
        const key = `${request.plural}/${request.name}`
        const spec = JSON.stringify((request.body as UnknownObject)['spec'])
        if (appliedSpecs.has(key) && appliedSpecs.get(key) !== spec && !isAnnotatedDryRun(request)) {
          throw new StatusError('Invalid', 'spec.template.spec is immutable')
        }
        const response = await transport.send(request, signal)
        if (request.options?.dryRun !== true) appliedSpecs.set(key, spec)
        return response
      }),
  })
}

const templateRef = (group: string, kind: string) => ({ apiVersion: `${group}.example.com/v1beta1`, kind, name: 'quick' })
const machineTemplate = { templateRef: templateRef('infra', 'DevMachineTemplate') }

/** Creates a Cluster of a class, with a control plane and a MachineDeployment. */
async function aTopology(env: CoreEnv, controlPlane: object = { replicas: 1 }): Promise<void> {
  for (const kind of [DevClusterTemplate, DevControlPlaneTemplate, DevMachineTemplate, DevConfigTemplate]) {
    await env.create(kind, 'quick', { spec: { template: { spec: { size: 1 } } } })
  }
  await env.create(ClusterClass, 'quick', {
    spec: {
      infrastructure: { templateRef: templateRef('infra', 'DevClusterTemplate') },
      controlPlane: {
        templateRef: templateRef('controlplane', 'DevControlPlaneTemplate'),
        machineInfrastructure: machineTemplate,
      },
      workers: {
        machineDeployments: [
          {
            class: 'default',
            bootstrap: { templateRef: templateRef('bootstrap', 'DevConfigTemplate') },
            infrastructure: machineTemplate,
          },
        ],
      },
    },
  })
  await env.settle()
  const workers = { machineDeployments: [{ class: 'default', name: 'md', replicas: 1 }] }
  await env.create(Cluster, 'demo', {
    spec: { topology: { classRef: { name: 'quick' }, version: 'v1.34.0', controlPlane, workers } },
  })
  await env.settle()
}

const objectsOf = async (env: CoreEnv, kind: DeclaredKind) =>
  (await env.client.list(kind, { namespace: 'default' })).items as UnknownObject[]
const only = async (env: CoreEnv, kind: DeclaredKind): Promise<UnknownObject> => {
  const objects = await objectsOf(env, kind)
  expect(objects).toHaveLength(1)
  return objects[0]!
}
const patchTopology = (env: CoreEnv, topology: object) => env.patch(Cluster, 'demo', { spec: { topology } })

for (const [rule, kind] of [
  ['core.infra-machine.dry-run', DevMachineTemplate],
  ['core.bootstrap-config.dry-run', DevConfigTemplate],
] as const) {
  testRule(
    rule,
    async (env) => {
      await aTopology(env)
      const namesBefore = (await objectsOf(env, kind)).map(({ metadata }) => metadata.name)
      await env.patch(kind, 'quick', { spec: { template: { spec: { size: 2 } } } })
      await patchTopology(env, { controlPlane: { metadata: { labels: { tier: 'gold' } } } })
      await env.advance(seconds(10))
      expect(dryRuns.map(({ plural }) => plural)).toContain(kind.plural)
      const objectsAfter = await objectsOf(env, kind)
      const added = objectsAfter.filter(({ metadata }) => !namesBefore.includes(metadata.name))
      expect(added.map(({ spec }) => spec)).toContainEqual({ template: { spec: { size: 2 } } })
      expect(objectsAfter.map(({ metadata }) => metadata.annotations?.[dryRunAnnotation])).toEqual(
        objectsAfter.map(() => undefined),
      )
    },
    topologyEnv,
  )
}

testRule(
  'core.control-plane.machine-template',
  async (env) => {
    const readinessGates = [{ conditionType: 'Backup' }]
    await aTopology(env, {
      replicas: 3,
      metadata: { labels: { tier: 'gold' }, annotations: { note: 'x' } },
      readinessGates,
      deletion: { nodeDrainTimeoutSeconds: 10, nodeVolumeDetachTimeoutSeconds: 20, nodeDeletionTimeoutSeconds: 30 },
    })
    const controlPlane = () => only(env, DevControlPlane)
    const before = await controlPlane()
    expect(before).toMatchObject({
      spec: {
        replicas: 3,
        version: 'v1.34.0',
        machineTemplate: {
          metadata: { labels: { tier: 'gold' }, annotations: { note: 'x' } },
          spec: {
            infrastructureRef: { apiGroup: 'infra.example.com', kind: 'DevMachineTemplate' },
            readinessGates,
            deletion: { nodeDrainTimeoutSeconds: 10, nodeVolumeDetachTimeoutSeconds: 20, nodeDeletionTimeoutSeconds: 30 },
          },
        },
      },
    })
    const ref = (object: UnknownObject) => (object as any).spec.machineTemplate.spec.infrastructureRef
    await patchTopology(env, {
      controlPlane: { metadata: { labels: { tier: 'silver' } }, deletion: { nodeDrainTimeoutSeconds: 40 } },
    })
    const after = await controlPlane()
    expect(after.metadata.uid).toBe(before.metadata.uid)
    expect(ref(after)).toEqual(ref(before))
    expect(after).toMatchObject({
      spec: {
        machineTemplate: { metadata: { labels: { tier: 'silver' } }, spec: { deletion: { nodeDrainTimeoutSeconds: 40 } } },
      },
    })
  },
  topologyEnv,
)

testRule(
  'core.control-plane.skew',
  async (env) => {
    await aTopology(env)
    // Without Machines, the upgrade of the MachineDeployment is complete as soon as it has the version.
    await patchTopology(env, { workers: { machineDeployments: [{ class: 'default', name: 'md', replicas: 0 }] } })
    const reportStatus = (status: object) =>
      env.patch(DevControlPlane, controlPlane.metadata.name, {
        status: { initialization: { controlPlaneInitialized: true }, ...counts, ...status },
      })
    const counts = { replicas: 1, readyReplicas: 1, availableReplicas: 1, upToDateReplicas: 1 }
    const controlPlane = await only(env, DevControlPlane)
    const infrastructure = await only(env, DevCluster)
    const controlPlaneEndpoint = { host: 'api.example.com', port: 6443 }
    const status = { initialization: { provisioned: true } }
    await env.patch(DevCluster, infrastructure.metadata.name, { spec: { controlPlaneEndpoint }, status })
    const versionOf = (object: UnknownObject) => (object as any).spec.version
    const workerVersion = async () => ((await only(env, MachineDeployment as DeclaredKind)) as any).spec.template.spec.version
    const upgrade = async (from: string, to: string, before: object, after: object) => {
      await reportStatus(before)
      await patchTopology(env, { version: to })
      await env.advance(seconds(60))
      expect([versionOf(await only(env, DevControlPlane)), await workerVersion()]).toEqual([to, from])
      await reportStatus(after)
      await env.advance(seconds(60))
      expect(await workerVersion()).toBe(to)
    }
    const version = (name: string) => ({ version: name })
    await upgrade('v1.34.0', 'v1.35.0', version('v1.34.0'), version('v1.35.0'))
    // `status.version` has the new version from the start; core ignores it when `status.versions` exists.
    const versions = (name: string) => ({ versions: [{ version: name, replicas: 1 }], version: 'v1.36.0' })
    await upgrade('v1.35.0', 'v1.36.0', versions('v1.35.0'), versions('v1.36.0'))
  },
  topologyEnv,
)

/** Creates a MachineDeployment with one Machine. */
async function aDeployment(env: CoreEnv): Promise<void> {
  await env.provisionCluster()
  for (const kind of [DevMachineTemplate, DevConfigTemplate])
    await env.create(kind, 'quick', { spec: { template: { spec: {} } } })
  await env.create(MachineDeployment, 'md', {
    spec: {
      clusterName: 'demo',
      replicas: 1,
      selector: { matchLabels: { app: 'demo' } },
      template: {
        metadata: { labels: { app: 'demo', tier: 'gold' }, annotations: { note: 'x' } },
        spec: {
          clusterName: 'demo',
          version: 'v1.34.0',
          bootstrap: { configRef: { apiGroup: 'bootstrap.example.com', kind: 'DevConfigTemplate', name: 'quick' } },
          infrastructureRef: { apiGroup: 'infra.example.com', kind: 'DevMachineTemplate', name: 'quick' },
        },
      },
    },
  })
  await env.advance(seconds(5))
}

const uidsOf = async (env: CoreEnv) =>
  Promise.all(
    [MachineSet, Machine, DevMachine, DevConfig].map(async (kind) => (await only(env, kind as DeclaredKind)).metadata.uid),
  )

testRule(
  'core.metadata-propagation',
  async (env) => {
    await aDeployment(env)
    const uidsBefore = await uidsOf(env)
    for (const kind of [MachineSet, Machine, DevMachine, DevConfig] as DeclaredKind[]) {
      const { labels, annotations } = (await only(env, kind)).metadata
      // A MachineSet has the annotations only in its own spec.template.
      expect([labels, annotations]).toMatchObject([{ app: 'demo', tier: 'gold' }, kind === MachineSet ? {} : { note: 'x' }])
    }
    const metadata = { labels: { tier: 'silver', zone: 'a' }, annotations: { note: 'y' } }
    await env.patch(MachineDeployment, 'md', { spec: { template: { metadata } } })
    await env.advance(seconds(5))
    expect(await uidsOf(env)).toEqual(uidsBefore)
    for (const kind of [Machine, DevMachine, DevConfig] as DeclaredKind[]) {
      expect((await only(env, kind)).metadata).toMatchObject({
        labels: { app: 'demo', ...metadata.labels },
        annotations: { note: 'y' },
      })
    }
    expect(await only(env, MachineSet as DeclaredKind)).toMatchObject({ spec: { template: { metadata } } })
  },
  topologyEnv,
)

testRule(
  'core.in-place-propagation',
  async (env) => {
    await aDeployment(env)
    const uidsBefore = await uidsOf(env)
    const spec = {
      minReadySeconds: 5,
      deletion: { nodeDrainTimeoutSeconds: 10, nodeVolumeDetachTimeoutSeconds: 20, nodeDeletionTimeoutSeconds: 30 },
      readinessGates: [{ conditionType: 'Backup' }],
      taints: [{ key: 'gpu', effect: 'NoSchedule', propagation: 'Always' }],
    }
    await env.patch(MachineDeployment, 'md', { spec: { template: { spec } } })
    await env.advance(seconds(5))
    expect(await uidsOf(env)).toEqual(uidsBefore)
    expect(await only(env, MachineSet as DeclaredKind)).toMatchObject({ spec: { template: { spec } } })
    expect(await only(env, Machine as DeclaredKind)).toMatchObject({ spec })
  },
  topologyEnv,
)
