/**
 * A valid request for every hook of Cluster API, for tests of handlers. Deterministic. Requests for hooks of providers are derived
 * from their schemas, if possible.
 */
import * as hooks from '@capstan/api'
import type { Hook } from '@capstan/api'
import type { UnknownObject } from '@capstan/kube'
import { applyMergePatch, freeze, messageOf } from '@capstan/kube'
import type { CallInput } from '../client/runtime-client.ts'
import { sampleOf } from './sample.ts'

/** Changes to a fixture: objects are merged, lists and values replaced, and null removes a field. */
export type Override<T> = T extends readonly unknown[] ? T : T extends object ? { [K in keyof T]?: Override<T[K]> | null } : T

/**
 * Returns a new valid request of a hook, without apiVersion, kind and settings, changed by `override`.
 *
 * @example
 * fixture(BeforeClusterUpgrade, { cluster: { metadata: { labels: { tier: 'prod' } } }, toKubernetesVersion: 'v1.36.0' })
 * @throws TypeError for a hook of a provider if no valid request can be derived from its schema
 */
export function fixture<H extends Hook>(hook: H, override: Override<CallInput<H>> = {} as Override<CallInput<H>>): CallInput<H> {
  const hasFixture = hook.group === hooks.HooksGroup && Object.hasOwn(fixtures, hook.name)
  const request = hasFixture ? fixtures[hook.name as keyof typeof fixtures] : derivedRequest(hook)
  return applyMergePatch(request, override) as CallInput<H>
}

/** Returns a request that is derived from the declaration of the hook, for hooks without a hand-written request. */
function derivedRequest(hook: Hook): object {
  try {
    const { apiVersion: _a, kind: _k, ...request } = sampleOf(hook.request.json)
    return request
  } catch (err) {
    throw new TypeError(`There is no fixture for the hook ${hooks.groupHookText(hook)}: ${messageOf(err)}`, { cause: err })
  }
}

const cluster: hooks.WireCluster = {
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'Cluster',
  metadata: {
    name: 'demo',
    namespace: 'default',
    uid: '3f1c8a52-6a4e-4c6e-9d0b-0d7a5a1f0c01',
    resourceVersion: '42',
    generation: 2,
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { team: 'blue' },
  },
  spec: {
    clusterNetwork: { pods: { cidrBlocks: ['192.168.0.0/16'] }, services: { cidrBlocks: ['10.128.0.0/12'] } },
    topology: {
      classRef: { name: 'quick' },
      version: 'v1.35.0',
      controlPlane: { replicas: 1 },
      workers: { machineDeployments: [{ class: 'default', name: 'md-0', replicas: 2 }] },
      variables: [{ name: 'region', value: 'eu1' }],
    },
  },
}

const steps = { controlPlaneUpgrades: [{ version: 'v1.35.0' }], workersUpgrades: [{ version: 'v1.35.0' }] }
const upgrade = { cluster, fromKubernetesVersion: 'v1.34.0', toKubernetesVersion: 'v1.35.0', ...steps }
const upgraded = { cluster, kubernetesVersion: 'v1.35.0', workersUpgrades: steps.workersUpgrades }

const infrastructure = (kind: string, spec: object, name = 'demo'): UnknownObject =>
  ({
    apiVersion: 'infrastructure.capstan.dev/v1alpha1',
    kind,
    metadata: { name, namespace: 'default' },
    spec,
  }) as unknown as UnknownObject

const bootstrap = (kind: string, spec: object): UnknownObject =>
  ({
    apiVersion: 'bootstrap.capstan.dev/v1alpha1',
    kind,
    metadata: { name: 'demo', namespace: 'default' },
    spec,
  }) as unknown as UnknownObject

const holder = (apiVersion: string, kind: string, name: string, fieldPath: string): hooks.HolderReference => ({
  apiVersion,
  kind,
  namespace: 'default',
  name,
  fieldPath,
})
const core = 'cluster.x-k8s.io/v1beta2'

const templates = [
  {
    holderReference: holder(core, 'Cluster', 'demo', 'spec.infrastructureRef'),
    object: infrastructure('LocalClusterTemplate', { template: { spec: {} } }),
  },
  {
    holderReference: holder(core, 'MachineDeployment', 'demo-md-0', 'spec.template.spec.infrastructureRef'),
    object: infrastructure(
      'LocalMachineTemplate',
      { template: { spec: { simulated: { provisioningDelay: '1s' } } } },
      'demo-md-0',
    ),
    variables: [
      {
        name: 'builtin',
        value: {
          machineDeployment: { name: 'demo-md-0', topologyName: 'md-0', class: 'default', version: 'v1.35.0', replicas: 2 },
        },
      },
    ],
  },
]
const variables = [
  { name: 'region', value: 'eu1' },
  {
    name: 'builtin',
    value: {
      cluster: {
        name: 'demo',
        namespace: 'default',
        uid: cluster.metadata.uid,
        topology: { version: 'v1.35.0', classRef: { name: 'quick', namespace: 'default' } },
      },
    },
  },
]
const uid = (index: number): string => `7091de79-0000-8000-8000-00000000000${index + 1}`

const machineSpec = (version: string) => ({
  clusterName: 'demo',
  version,
  bootstrap: { configRef: { apiGroup: 'bootstrap.capstan.dev', kind: 'LocalBootstrapConfig', name: 'demo' } },
  infrastructureRef: { apiGroup: 'infrastructure.capstan.dev', kind: 'LocalMachine', name: 'demo' },
})
const machine = (version: string) => ({
  machine: {
    apiVersion: core,
    kind: 'Machine',
    metadata: { name: 'demo-abcde', namespace: 'default', labels: { 'cluster.x-k8s.io/cluster-name': 'demo' } },
    spec: machineSpec(version),
  },
  infrastructureMachine: infrastructure('LocalMachine', {}),
  bootstrapConfig: bootstrap('LocalBootstrapConfig', {}),
})
const machineSet = (name: string, version: string) => ({
  machineSet: {
    apiVersion: core,
    kind: 'MachineSet',
    metadata: { name, namespace: 'default', labels: { 'cluster.x-k8s.io/cluster-name': 'demo' } },
    spec: {
      clusterName: 'demo',
      selector: { matchLabels: { 'cluster.x-k8s.io/cluster-name': 'demo' } },
      template: { spec: machineSpec(version) },
    },
  },
  infrastructureMachineTemplate: infrastructure('LocalMachineTemplate', { template: { spec: {} } }),
  bootstrapConfigTemplate: bootstrap('LocalBootstrapConfigTemplate', { template: { spec: {} } }),
})

const fixtures = freeze({
  Discovery: {},
  BeforeClusterCreate: { cluster },
  AfterControlPlaneInitialized: { cluster },
  BeforeClusterUpgrade: upgrade,
  BeforeControlPlaneUpgrade: upgrade,
  AfterControlPlaneUpgrade: upgraded,
  BeforeWorkersUpgrade: { ...upgrade, controlPlaneUpgrades: [] },
  AfterWorkersUpgrade: { cluster, kubernetesVersion: 'v1.35.0' },
  AfterClusterUpgrade: { cluster, kubernetesVersion: 'v1.35.0' },
  BeforeClusterDelete: { cluster },
  GenerateUpgradePlan: {
    cluster,
    fromControlPlaneKubernetesVersion: 'v1.33.0',
    fromWorkersKubernetesVersion: 'v1.33.0',
    toKubernetesVersion: 'v1.35.0',
  },
  GeneratePatches: { variables, items: templates.map((item, index) => ({ uid: uid(index), ...item })) },
  ValidateTopology: { variables, items: templates },
  DiscoverVariables: {},
  CanUpdateMachine: { current: machine('v1.34.0'), desired: machine('v1.35.0') },
  CanUpdateMachineSet: { current: machineSet('demo-old', 'v1.34.0'), desired: machineSet('demo-new', 'v1.35.0') },
  UpdateMachine: { desired: machine('v1.35.0') },
})
