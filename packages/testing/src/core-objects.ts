/** Builders of Cluster API objects, Nodes, conditions, and objects of providers. Fields of their arguments replace the defaults. */
import type { Cluster, Machine, MachineDeployment, MachinePool, MachineSet } from '@capstan/api'
import { type Condition, type Node, type ObjectMeta, type UnknownObject, unknownKind } from '@capstan/kube'

type Overrides<T extends { spec?: unknown; status?: unknown }> = {
  metadata?: Partial<ObjectMeta>
  spec?: Partial<NonNullable<T['spec']>>
  status?: NonNullable<T['status']>
}

/** Default creation time of objects, and default transition time of conditions. */
export const TestTime = '2026-01-01T00:00:00Z'

export const aCluster = ({ metadata, spec, status }: Overrides<Cluster> = {}): Cluster => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'Cluster',
  metadata: meta('demo', metadata),
  spec: {
    infrastructureRef: { apiGroup: 'infra.example.com', kind: 'DevCluster', name: 'demo' },
    controlPlaneRef: { apiGroup: 'controlplane.example.com', kind: 'DevControlPlane', name: 'demo' },
    ...spec,
  },
  ...(status ? { status } : {}),
})

export const aMachine = ({ metadata, spec, status }: Overrides<Machine> = {}): Machine => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'Machine',
  metadata: meta('m1', { labels: { 'cluster.x-k8s.io/cluster-name': 'demo' }, ...metadata }),
  spec: {
    clusterName: 'demo',
    bootstrap: { configRef: { apiGroup: 'bootstrap.example.com', kind: 'DevConfig', name: metadata?.name ?? 'm1' } },
    infrastructureRef: { apiGroup: 'infra.example.com', kind: 'DevMachine', name: metadata?.name ?? 'm1' },
    version: 'v1.34.0',
    ...spec,
  },
  ...(status ? { status } : {}),
})

export const aMachineSet = ({ metadata, spec, status }: Overrides<MachineSet> = {}): MachineSet => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'MachineSet',
  metadata: meta('ms', { labels: { 'cluster.x-k8s.io/cluster-name': 'demo' }, ...metadata }),
  spec: {
    clusterName: 'demo',
    replicas: 1,
    selector: { matchLabels: { set: 'ms' } },
    template: { metadata: { labels: { set: 'ms' } }, spec: aMachine().spec },
    ...spec,
  },
  ...(status ? { status } : {}),
})

export const aMachineDeployment = ({ metadata, spec, status }: Overrides<MachineDeployment> = {}): MachineDeployment => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'MachineDeployment',
  metadata: meta('md', { labels: { 'cluster.x-k8s.io/cluster-name': 'demo' }, ...metadata }),
  spec: {
    clusterName: 'demo',
    replicas: 1,
    selector: { matchLabels: { deployment: 'md' } },
    template: { metadata: { labels: { deployment: 'md' } }, spec: aMachine().spec },
    ...spec,
  },
  ...(status ? { status } : {}),
})

export const aMachinePool = ({ metadata, spec, status }: Overrides<MachinePool> = {}): MachinePool => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'MachinePool',
  metadata: meta('mp', { labels: { 'cluster.x-k8s.io/cluster-name': 'demo' }, ...metadata }),
  spec: {
    clusterName: 'demo',
    replicas: 2,
    template: {
      spec: {
        clusterName: 'demo',
        bootstrap: { configRef: { apiGroup: 'bootstrap.example.com', kind: 'DevConfig', name: 'mp' } },
        infrastructureRef: { apiGroup: 'infra.example.com', kind: 'DevMachinePool', name: 'mp' },
        version: 'v1.34.0',
      },
    },
    ...spec,
  },
  ...(status ? { status } : {}),
})

export function aNode({ metadata, spec, status }: Overrides<Node> = {}): Node {
  const { namespace: _, ...clusterScoped } = meta('node-1', metadata)
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: clusterScoped,
    spec: { providerID: 'dev:///m1', ...spec },
    status: { conditions: nodeConditions(), ...status },
  }
}

/** Returns the Node conditions of a healthy kubelet. `overrides` replaces or adds conditions, by type; a string is the status. */
export const nodeConditions = (
  overrides: { [type: string]: string | { status: string; message: string } } = {},
): { type: string; status: string; message: string; lastTransitionTime: string }[] =>
  Object.entries({ Ready: 'True', MemoryPressure: 'False', DiskPressure: 'False', PIDPressure: 'False', ...overrides }).map(
    ([type, value]) => ({
      type,
      lastTransitionTime: TestTime,
      ...(typeof value === 'string' ? { status: value, message: '' } : value),
    }),
  )

/** Returns an object of a provider. Its API version, v1beta1, is that of the provider's group, and does not name a contract version. */
export const aProviderObject = (
  kind: string,
  {
    group = 'infra.example.com',
    metadata,
    ...fields
  }: { group?: string; metadata?: Partial<ObjectMeta>; [field: string]: unknown } = {},
): UnknownObject => ({
  apiVersion: `${group}/v1beta1`,
  kind,
  metadata: meta('demo', metadata),
  ...fields,
})

export const aCondition = (type: string, status: Condition['status'], overrides: Partial<Condition> = {}): Condition => ({
  type,
  status,
  reason: 'Test',
  message: '',
  lastTransitionTime: TestTime,
  ...overrides,
})

/** Formats a condition without its type: status, reason and message. */
export const stateText = ({ status, reason = '', message = '' }: { status: string; reason?: string; message?: string }): string =>
  `${status} ${reason}${message === '' ? '' : `: ${message}`}`

/** Returns the state of an existing provider object as core's reconcilers read it, by contract v1beta2. */
export const foundObject = (object: UnknownObject) => ({
  state: 'found' as const,
  external: {
    object,
    contract: 'v1beta2' as const,
    kind: unknownKind({ apiVersion: object.apiVersion, kind: object.kind, plural: 'x' }),
  },
})

const meta = (name: string, overrides: Partial<ObjectMeta> = {}): ObjectMeta => ({
  name,
  namespace: 'default',
  uid: `${overrides.name ?? name}-uid`,
  resourceVersion: '1',
  generation: 1,
  creationTimestamp: TestTime,
  ...overrides,
})
