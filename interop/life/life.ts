/**
 * Steps in the lifecycle of a Cluster with or without a ClusterClass. The steps work with Capstan's core and with upstream's, and with each
 * `TestProvider`.
 */
import { readFileSync } from 'node:fs'
import {
  Cluster,
  ClusterClass,
  ClusterNameLabel,
  Machine,
  MachineDeployment,
  MachinePool,
  RemediateMachineAnnotation,
} from '@capstan/api'
import {
  type Client,
  CustomResourceDefinition,
  getCondition,
  type Input,
  isTrue,
  type Kind,
  keyOf,
  type KubeObject,
  orAbsent,
  Secret,
} from '@capstan/kube'
import { LocalMachinePool } from '@capstan/local'
import { parseAllDocuments } from 'yaml'
import type { Checks } from '../processes/capstan-process.ts'
import { until } from '../shared/until.ts'

/** A provider whose Clusters the steps create. */
export interface TestProvider {
  /**
   * Prefix of the provider's files in this folder: `NAME.yaml` contains a ClusterClass, `NAME-cluster.yaml` a Cluster of this class,
   * `NAME-plain.yaml` a Cluster without a class.
   */
  readonly name: 'local' | 'memory'
  readonly controlPlane: Kind
  /** Kind of the provider's machine pools, if the suites use any. `NAME-pool.yaml` contains the pool of the Cluster without a class. */
  readonly pool?: Kind<PoolInfrastructure>
}

interface PoolInfrastructure extends KubeObject {
  readonly status?: { readonly instances?: readonly { readonly version?: string; readonly ready: boolean }[] }
}

const controlPlaneKind = (group: string, version: string, kind: string, plural: string): Kind => ({
  group,
  version,
  kind,
  plural,
  scope: 'Namespaced',
})

export const localProvider: TestProvider = {
  name: 'local',
  controlPlane: controlPlaneKind('controlplane.capstan.dev', 'v1alpha1', 'LocalControlPlane', 'localcontrolplanes'),
  pool: LocalMachinePool as Kind<PoolInfrastructure>,
}
export const inMemoryProvider: TestProvider = {
  name: 'memory',
  controlPlane: controlPlaneKind('controlplane.cluster.x-k8s.io', 'v1beta2', 'KubeadmControlPlane', 'kubeadmcontrolplanes'),
}

/** Arguments of all steps. */
export interface LifeContext {
  readonly client: Client
  readonly namespace: string
  readonly provider: TestProvider
  readonly checks: Checks
  readonly progress: (line: string) => void
  /** Time limit in seconds of each wait except that of `undeletedObjects`, long enough for a busy machine. */
  readonly limit: number
}

/** Name of the pool of the Cluster without a class. */
const poolName = 'pool'

/** Names of the Clusters in the provider's files: `classy` has a ClusterClass, `plain` has none. */
export type ClusterName = 'classy' | 'plain'

/** Desired state of a Cluster when all controllers are idle. */
export interface DesiredState {
  readonly version: string
  /** Number of control plane Machines. */
  readonly controlPlane: number
  /** Number of Machines that belong neither to the control plane nor to a pool. */
  readonly workers: number
  /**
   * Number of machines in the Cluster's pool. Default: `plain` is created without a pool; the number of machines of an existing pool is not
   * changed, and the pool is not checked. An upgrade of `classy` upgrades its pool in any case.
   */
  readonly pool?: number
}

/** Creates the objects of a YAML file of this folder in the namespace. Their kinds must be kinds of Cluster API or Capstan. */
export async function createObjectsFromFile(
  { client, namespace }: Pick<LifeContext, 'client' | 'namespace'>,
  file: string,
): Promise<void> {
  const kinds = await customKinds(client)
  for (const document of parseAllDocuments(readFileSync(new URL(file, import.meta.url), 'utf8'))) {
    const object = document.toJS() as Input<KubeObject> & { kind: string }
    await client.create(kinds.get(object.kind)!, { ...object, metadata: { ...object.metadata, namespace } })
  }
}

/** Creates the provider's ClusterClass and its templates, and waits until the condition VariablesReady of the class is True. */
export async function createClass(context: LifeContext): Promise<void> {
  await createObjectsFromFile(context, `${context.provider.name}.yaml`)
  await waitFor(
    context,
    ClusterClass,
    'class accepted',
    ([clusterClass]) => clusterClass !== undefined && isTrue(clusterClass, 'VariablesReady'),
  )
}

/** Creates a Cluster of the provider, and waits for the desired state. */
export async function createCluster(context: LifeContext, name: ClusterName, desired: DesiredState): Promise<void> {
  await createObjectsFromFile(context, `${context.provider.name}-${name === 'classy' ? 'cluster' : 'plain'}.yaml`)
  if (name === 'plain' && desired.pool !== undefined) await createObjectsFromFile(context, `${context.provider.name}-pool.yaml`)
  await waitUntilSettled(context, name, desired)
}

/** Sets the replicas of the control plane, of the first MachineDeployment and of the pool, and waits for the desired state. */
export async function scale(context: LifeContext, name: ClusterName, desired: DesiredState): Promise<void> {
  if (name === 'classy') {
    await patchTopology(context, [
      { path: 'controlPlane/replicas', value: desired.controlPlane },
      { path: 'workers/machineDeployments/0/replicas', value: desired.workers },
      ...(desired.pool === undefined ? [] : [{ path: 'workers/machinePools/0/replicas', value: desired.pool }]),
    ])
  } else {
    const { client, namespace, provider } = context
    const patch = (kind: Kind, replicas: number, objectName: string = name) =>
      client.patch(kind, { namespace, name: objectName }, { type: 'merge', body: { spec: { replicas } } })
    await patch(provider.controlPlane, desired.controlPlane)
    await patch(MachineDeployment as unknown as Kind, desired.workers)
    if (desired.pool !== undefined) await patch(MachinePool as unknown as Kind, desired.pool, poolName)
  }
  await waitUntilSettled(context, name, desired)
}

/**
 * Upgrades a Cluster through `versions`, of which the last is `desired.version`. If the Cluster has a ClusterClass, sets only the last one,
 * in its topology. Otherwise upgrades first the control plane and then the workers to each version. `during` runs once, when the first
 * Machine has a new version.
 */
export async function upgrade(
  context: LifeContext,
  name: ClusterName,
  versions: readonly string[],
  desired: DesiredState,
  during?: () => Promise<void>,
): Promise<void> {
  const { client, namespace, provider } = context
  const started = (version: string) =>
    waitFor(context, Machine, `${name}: a Machine of ${version}`, (all) =>
      ofCluster(all, name).some((machine) => machine.spec.version === version),
    )
  if (name === 'classy') {
    await patchTopology(context, [{ path: 'version', value: desired.version }])
    await started(versions[0]!)
    await during?.()
  } else {
    for (const [index, version] of versions.entries()) {
      await client.patch(provider.controlPlane, { namespace, name }, { type: 'merge', body: { spec: { version } } })
      await started(version)
      if (index === 0) await during?.()
      await waitFor(context, Machine, `${name}: control plane of ${version}`, (all) => {
        const controlPlaneMachines = ofCluster(all, name).filter(isControlPlane)
        return (
          controlPlaneMachines.length === desired.controlPlane &&
          controlPlaneMachines.every((machine) => machine.spec.version === version && isTrue(machine, 'Available'))
        )
      })
      // Until the control plane is stable, preflight checks stop MachineSets from creating Machines.
      const body = { spec: { template: { spec: { version } } } }
      await client.patch(MachineDeployment, { namespace, name }, { type: 'merge', body })
      if (desired.pool !== undefined) await client.patch(MachinePool, { namespace, name: poolName }, { type: 'merge', body })
      if (index < versions.length - 1) await waitUntilSettled(context, name, { ...desired, version })
    }
  }
  await waitUntilSettled(context, name, desired)
}

/** Marks a Machine as unhealthy, as a user does, and waits until it is replaced. */
export async function remediate(
  context: LifeContext,
  name: ClusterName,
  role: 'worker' | 'control plane',
  desired: DesiredState,
) {
  const { client, namespace } = context
  const isSelected = (machine: Machine) => isControlPlane(machine) === (role === 'control plane') && !isOfPool(machine)
  const unhealthy = ofCluster((await client.list(Machine, { namespace })).items, name).find(isSelected)!
  const body = { metadata: { annotations: { [RemediateMachineAnnotation]: '' } } }
  await client.patch(Machine, keyOf(unhealthy), { type: 'merge', body })
  await waitFor(
    context,
    Machine,
    `${name}: ${role} Machine ${unhealthy.metadata.name} is replaced`,
    (all) => !all.some(({ metadata }) => metadata.uid === unhealthy.metadata.uid),
  )
  await waitUntilSettled(context, name, desired)
}

/** Deletes a Cluster, and waits until it no longer exists. */
export async function remove(context: LifeContext, name: ClusterName): Promise<void> {
  await context.client.delete(Cluster, { namespace: context.namespace, name })
  await waitFor(context, Cluster, `${name} is deleted`, (all) => !all.some(({ metadata }) => metadata.name === name))
}

/**
 * Waits until Machines and pool have the desired state, the Cluster is Available, none of its conditions reports a change in progress, and,
 * with a ClusterClass, its topology is reconciled.
 */
export async function waitUntilSettled(context: LifeContext, name: ClusterName, desired: DesiredState): Promise<void> {
  const { version, controlPlane, workers, pool } = desired
  const isSettled = (cluster: Cluster | undefined) =>
    cluster !== undefined &&
    isTrue(cluster, 'Available') &&
    (name === 'plain' || isTrue(cluster, 'TopologyReconciled')) &&
    ['RollingOut', 'ScalingUp', 'ScalingDown', 'Remediating'].every((type) => getCondition(cluster, type)?.status === 'False')
  const description = `${name}: ${controlPlane} + ${workers} Machines of ${version}`
  // A Machine may change during the wait for the Cluster. Then all waits are repeated.
  for (;;) {
    if (pool !== undefined) await waitForPool(context, name, { version, pool })
    await waitFor(context, Machine, description, (all) => haveDesiredState(ofCluster(all, name)))
    await waitFor(context, Cluster, `${description}: Cluster settled`, (all) => isSettled(byName(all, name)))
    const { items } = await context.client.list(Machine, { namespace: context.namespace })
    if (haveDesiredState(ofCluster(items, name))) return
  }

  function haveDesiredState(machines: readonly Machine[]): boolean {
    const controlPlaneMachines = machines.filter(isControlPlane)
    const workerMachines = machines.filter((machine) => !isControlPlane(machine) && !isOfPool(machine))
    const isUpToDate = (machine: Machine) =>
      machine.spec.version === version && isTrue(machine, 'Available') && machine.metadata.deletionTimestamp === undefined
    return (
      controlPlaneMachines.length === controlPlane &&
      workerMachines.length === workers &&
      machines.filter((machine) => !isOfPool(machine)).every(isUpToDate)
    )
  }
}

/**
 * Returns `resource.group name` of all objects in the namespace, sorted, except Events, Leases and the objects that Kubernetes creates in
 * each namespace.
 */
export const inventory = async (context: Pick<LifeContext, 'client' | 'namespace'>): Promise<string[]> =>
  [...(await objectsOfEveryKind(context)).keys()].sort()

/** Returns all objects of Cluster API's and Capstan's kinds in the namespace, and all Secrets, by `Kind name`. */
export async function clusterApiObjects({
  client,
  namespace,
}: Pick<LifeContext, 'client' | 'namespace'>): Promise<Map<string, KubeObject>> {
  const objects = new Map<string, KubeObject>()
  const kinds = [...(await customKinds(client)).values(), Secret as Kind].filter(({ scope }) => scope === 'Namespaced')
  for (const kind of kinds)
    for (const object of (await client.list(kind, { namespace })).items)
      objects.set(`${kind.kind} ${object.metadata.name}`, object)
  return objects
}

interface DiscoveredResource {
  readonly name: string
  readonly kind: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
}

/**
 * A stable version of each API group of Kubernetes that stores namespaced objects other than Events and Leases. The server need not serve
 * all of them.
 */
const builtInVersions = [
  { group: '', version: 'v1' },
  { group: 'apps', version: 'v1' },
  { group: 'autoscaling', version: 'v2' },
  { group: 'batch', version: 'v1' },
  { group: 'discovery.k8s.io', version: 'v1' },
  { group: 'networking.k8s.io', version: 'v1' },
  { group: 'policy', version: 'v1' },
  { group: 'rbac.authorization.k8s.io', version: 'v1' },
  { group: 'resource.k8s.io', version: 'v1' },
  { group: 'storage.k8s.io', version: 'v1' },
]

/** Whether Kubernetes creates the object in each namespace. */
const isCreatedByKubernetes = (plural: string, name: string): boolean =>
  (plural === 'configmaps' && name === 'kube-root-ca.crt') || (plural === 'serviceaccounts' && name === 'default')

/** Returns the objects that `inventory` lists, by `resource.group name`. */
async function objectsOfEveryKind({
  client,
  namespace,
}: Pick<LifeContext, 'client' | 'namespace'>): Promise<Map<string, KubeObject>> {
  const { items: definitions } = await client.list(CustomResourceDefinition)
  const customVersions = definitions.map(({ spec: { group, versions } }) => ({
    group,
    version: versions.find(({ storage }) => storage)!.name,
  }))
  const versions = new Map(
    [...builtInVersions, ...customVersions].map((version) => [`${version.group}/${version.version}`, version]),
  )
  const objects = new Map<string, KubeObject>()
  for (const { group, version } of versions.values()) {
    // A request without a resource name returns the discovery document of the version, or 404.
    const discovered = await orAbsent(client.transport.send({ verb: 'get', group, version, plural: '' }))
    const { resources = [] } = (discovered ?? {}) as { resources?: readonly DiscoveredResource[] }
    for (const { name: plural, kind, namespaced, verbs } of resources) {
      if (!namespaced || !verbs.includes('list') || plural === 'events') continue
      const { items } = await client.list({ group, version, kind, plural, scope: 'Namespaced' }, { namespace })
      for (const object of items)
        if (!isCreatedByKubernetes(plural, object.metadata.name))
          objects.set(`${plural}.${group} ${object.metadata.name}`, object)
    }
  }
  return objects
}

/**
 * Waits until the namespace has no objects except those of `before`, which `inventory` has returned. Returns a description of each other
 * object that still exists after 150 seconds.
 */
export async function undeletedObjects(context: LifeContext, before: readonly string[]): Promise<string[]> {
  // The garbage collector of kube-controller-manager discovers new kinds only every 30 s, and deletes no objects while it does so.
  const end = performance.now() + 150_000
  for (;;) {
    const undeleted = [...(await objectsOfEveryKind(context))].filter(([name]) => !before.includes(name))
    if (undeleted.length === 0) return []
    if (performance.now() > end)
      return undeleted.map(([name, { metadata }]) => {
        const { creationTimestamp, deletionTimestamp, finalizers, ownerReferences } = metadata
        return `${name} ${JSON.stringify({ creationTimestamp, deletionTimestamp, finalizers, ownerReferences })}`
      })
    await new Promise((resolve) => void setTimeout(resolve, 1000))
  }
}

/**
 * Returns the kinds of Cluster API and Capstan that are installed as CustomResourceDefinitions, by name of the kind, each in its storage
 * version. Kinds of clusterctl are left out.
 */
export async function customKinds(client: Client): Promise<Map<string, Kind>> {
  const { items } = await client.list(CustomResourceDefinition)
  return new Map(
    items
      .filter(({ spec: { group } }) => /\bcluster\.x-k8s\.io$|\.capstan\.dev$/.test(group) && !group.startsWith('clusterctl.'))
      .map(({ spec: { group, names, scope, versions } }) => [
        names.kind,
        { group, version: versions.find(({ storage }) => storage)!.name, kind: names.kind, plural: names.plural, scope },
      ]),
  )
}

/**
 * Waits until the objects of a kind in the namespace fulfil a condition, and returns them.
 *
 * @throws Error if they do not within `limit` seconds
 */
export const waitFor = <T extends KubeObject>(
  { client, namespace, limit }: Pick<LifeContext, 'client' | 'namespace' | 'limit'>,
  kind: Kind<T>,
  description: string,
  isReached: (objects: T[]) => boolean,
) => until(client, kind, description, isReached, { namespace, seconds: limit })

/** Waits until a Cluster's MachinePools have this number of available replicas in total. */
export const waitForAvailablePools = (context: LifeContext, name: ClusterName, replicas: number) =>
  waitFor(context, MachinePool, `${name}: ${replicas} available replicas of pools`, (all) => {
    const ownPools = all.filter(({ spec }) => spec.clusterName === name)
    return ownPools.reduce((sum, { status }) => sum + (status?.availableReplicas ?? 0), 0) === replicas
  })

/** Waits until a Cluster's MachinePools have this number of Nodes in total. */
export const waitForPoolNodes = (context: LifeContext, name: ClusterName, replicas: number) =>
  waitFor(context, MachinePool, `${name}: ${replicas} Nodes of pools`, (all) => {
    const ownPools = all.filter(({ spec }) => spec.clusterName === name)
    return ownPools.length > 0 && ownPools.reduce((sum, { status }) => sum + (status?.nodeRefs?.length ?? 0), 0) === replicas
  })

/** Waits until the provider reports `pool` machines, all ready and of the version, and the Cluster's MachinePools have as many Nodes. */
async function waitForPool(
  context: LifeContext,
  name: ClusterName,
  { version, pool }: { version: string; pool: number },
): Promise<void> {
  const description = `${name}: ${pool} machines of ${version} in its pool`
  await waitFor(context, context.provider.pool!, description, (all) =>
    all
      .filter(({ metadata }) => metadata.labels?.[ClusterNameLabel] === name)
      .some(
        ({ status: { instances = [] } = {} }) =>
          instances.length === pool && instances.every((instance) => instance.ready && instance.version === version),
      ),
  )
  await waitForPoolNodes(context, name, pool)
}

const patchTopology = ({ client, namespace }: LifeContext, operations: readonly { path: string; value: string | number }[]) =>
  client.patch(
    Cluster,
    { namespace, name: 'classy' },
    {
      type: 'json',
      operations: operations.map(({ path, value }) => ({ op: 'replace', path: `/spec/topology/${path}`, value })),
    },
  )

const byName = (all: readonly Cluster[], name: string) => all.find(({ metadata }) => metadata.name === name)
const ofCluster = (all: readonly Machine[], name: string) => all.filter(({ spec }) => spec.clusterName === name)
const hasLabel = ({ metadata }: Machine, label: string) => metadata.labels?.[`cluster.x-k8s.io/${label}`] !== undefined
const isControlPlane = (machine: Machine): boolean => hasLabel(machine, 'control-plane')
const isOfPool = (machine: Machine): boolean => hasLabel(machine, 'pool-name')
