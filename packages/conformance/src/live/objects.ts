/**
 * Creates the objects of scenarios: Clusters with their provider objects, and workers. The spec of a provider object under test is made from
 * the first example of its kind: the first spec that the user gave for this kind or its template. Without an example, it starts empty.
 */
import { Cluster, ClusterNameLabel, Machine, MachineDeployment, MachinePool } from '@capstan/api'
import { ControlPlaneContract } from '@capstan/api/contract'
import { type Input, type Kind, type KubeObject, type OwnerReference, Secret, typeMeta, type UnknownObject } from '@capstan/kube'
import { fieldAt } from '../schema-fields.ts'
import type { ContractName } from '../manifests.ts'
import type { Bench } from './bench.ts'
import { StubBootstrapConfig, StubControlPlane } from './stubs.ts'
import type { TargetKind } from './target.ts'

export interface ClusterOptions {
  /** Default: true. */
  readonly withInfraCluster?: boolean
  /** Default: true. */
  readonly withControlPlane?: boolean
  /** `spec.paused` of the Cluster. */
  readonly paused?: boolean
  /** Annotations of the InfraCluster. */
  readonly annotations?: { readonly [key: string]: string }
}

/** Creates templates, InfraCluster, control plane and Cluster, all with the same name. */
export async function createCluster(bench: Bench, name: string, options: ClusterOptions = {}): Promise<Cluster> {
  const { withInfraCluster = true, withControlPlane = true, paused, annotations } = options
  await createTemplates(bench, name)
  if (withInfraCluster)
    await createExample(bench, 'InfraCluster', {
      metadata: { name, ...(annotations ? { annotations: { ...annotations } } : {}) },
    })
  if (withControlPlane) await createControlPlane(bench, name, {})
  const infraCluster = bench.target.InfraCluster!.kind
  return bench.create(Cluster, {
    metadata: { name },
    spec: {
      ...(paused ? { paused } : {}),
      infrastructureRef: refOf(infraCluster, name),
      ...(withControlPlane ? { controlPlaneRef: refOf(controlPlaneKind(bench), name) } : {}),
    },
  } as Input<Cluster>)
}

/** Creates the templates for Machines of control planes and MachineDeployments. */
async function createTemplates(bench: Bench, name: string): Promise<void> {
  for (const contract of ['InfraMachine', 'BootstrapConfig'] as const) await createTemplate(bench, contract, name)
}

/** Creates a template that contains the first example. Returns `undefined` if the kind is not under test or has no templates. */
export async function createTemplate(bench: Bench, contract: ContractName, name: string): Promise<UnknownObject | undefined> {
  const target = bench.target[contract]
  if (!target?.template) return undefined
  return bench.create(target.template.kind, { metadata: { name }, spec: { template: { spec: exampleOf(target) } } } as never)
}

/** Returns the kind of control planes under test; the stub kind if none is under test. */
export const controlPlaneKind = ({ target }: Bench): Kind => target.ControlPlane?.kind ?? StubControlPlane

/**
 * Creates the control plane of a Cluster: the stub if no kind of control planes is under test; otherwise an object of the kind under test, with
 * the Kubernetes version, one replica and the template of its Machines in the fields that the kind has.
 */
export function createControlPlane(bench: Bench, name: string, metadata: Partial<KubeObject['metadata']>): Promise<KubeObject> {
  const target = bench.target.ControlPlane
  if (!target) return bench.create(StubControlPlane as Kind, { metadata: { ...metadata, name } })
  const spec = structuredClone(exampleOf(target)) as { [field: string]: unknown }
  const object = { metadata: withExample({ ...metadata, name }, target), spec } as Input<UnknownObject>
  set(object, ControlPlaneContract.version.paths[target.contractVersion], bench.versions.kubernetes, target)
  set(object, ControlPlaneContract.specReplicas.paths[target.contractVersion], 1, target)
  const template = bench.target.InfraMachine?.template
  const path = ControlPlaneContract.machineInfrastructureRef.paths[target.contractVersion]
  if (template) {
    const { kind } = template
    const v1beta1Ref = { ...typeMeta(kind), name, namespace: bench.namespace }
    set(object, path, target.contractVersion === 'v1beta2' ? refOf(kind, name) : v1beta1Ref, target)
  }
  return bench.create(target.kind, object)
}

/** Creates an object of the kind under test, with the spec, labels and annotations of the first example. */
export function createExample(
  bench: Bench,
  contract: ContractName,
  { metadata }: { metadata: Partial<KubeObject['metadata']> },
): Promise<UnknownObject> {
  const target = bench.target[contract]!
  return bench.create(target.kind, { metadata: withExample(metadata, target), spec: structuredClone(exampleOf(target)) } as never)
}

/** Returns the metadata with the labels and annotations of the example added. */
function withExample(metadata: Partial<KubeObject['metadata']>, target: TargetKind): Partial<KubeObject['metadata']> {
  const labels = { ...target.metadata.labels, ...metadata.labels }
  const annotations = { ...target.metadata.annotations, ...metadata.annotations }
  return {
    ...metadata,
    ...(Object.keys(labels).length > 0 ? { labels } : {}),
    ...(Object.keys(annotations).length > 0 ? { annotations } : {}),
  }
}

/** Returns the spec of the first example; an empty spec if there is no example. */
export const exampleOf = ({ examples }: TargetKind): { readonly [field: string]: unknown } => examples[0] ?? {}

/** Sets a field if the schema has it. */
function set(object: object, path: string, value: unknown, { crd, kind }: TargetKind): void {
  const version = crd.spec.versions.find(({ name }) => name === kind.version)
  if (fieldAt(version?.schema?.openAPIV3Schema ?? {}, path) === undefined) return
  const names = path.split('.')
  const lastName = names.pop()!
  let parent = object as { [field: string]: unknown }
  for (const name of names) parent = (parent[name] ??= {}) as { [field: string]: unknown }
  parent[lastName] = value
}

export const refOf = ({ group, kind }: Kind, name: string) => ({ apiGroup: group, kind, name })

/** Returns an owner reference that makes `owner` the controller. */
export const ownerOf = (owner: KubeObject, kind: Kind): OwnerReference => ({
  ...typeMeta(kind),
  name: owner.metadata.name,
  uid: owner.metadata.uid,
  controller: true,
})

/**
 * Returns `spec.bootstrap` of a Machine: a reference to an object or template of the bootstrap provider under test. If there is no such
 * provider or template, creates a Secret with bootstrap data and returns the name of the Secret in `spec.bootstrap`.
 */
export async function bootstrapOf(bench: Bench, cluster: string, name: string, as: 'template' | 'object') {
  const target = bench.target.BootstrapConfig
  if (target && as === 'object') return { configRef: refOf(target.kind, name) }
  if (target?.template) return { configRef: refOf(target.template.kind, name) }
  return { dataSecretName: await bootstrapSecret(bench, cluster, name) }
}

/**
 * Creates the Secret that a bootstrap provider would create, unless it exists, and returns its name. The Secret contains a script without
 * effect.
 */
export async function bootstrapSecret(bench: Bench, cluster: string, name: string): Promise<string> {
  const secretName = `${name}-bootstrap`
  if (!bench.recording.object(Secret, secretName)) {
    await bench.create(Secret, {
      metadata: { name: secretName, labels: { [ClusterNameLabel]: cluster } },
      type: 'cluster.x-k8s.io/secret',
      data: { value: btoa('#!/bin/sh\n'), format: btoa('cloud-config') },
    })
  }
  return secretName
}

/** Creates a MachineDeployment with the name of its Cluster, from the templates with this name. */
export async function createWorkers(bench: Bench, name: string, replicas: number): Promise<void> {
  const labels = { [ClusterNameLabel]: name, 'conform.capstan.dev/workers': name }
  await bench.create(MachineDeployment, {
    metadata: { name, labels: { [ClusterNameLabel]: name } },
    spec: {
      clusterName: name,
      replicas,
      // Without a control plane under test there are no Nodes, so no Machine is ever available. A rollout must not wait for available
      // Machines.
      rollout: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '100%', maxUnavailable: '100%' } } },
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: await machineSpec(bench, name, 'template') },
    },
  } as Input<MachineDeployment>)
}

/** Returns the spec of Machines, with references to templates or to objects. Creates the bootstrap Secret as `bootstrapOf` does. */
export async function machineSpec(bench: Bench, cluster: string, as: 'template' | 'object', name = cluster) {
  const infra = bench.target.InfraMachine!
  return {
    clusterName: cluster,
    version: bench.versions.kubernetes,
    bootstrap: await bootstrapOf(bench, cluster, name, as),
    infrastructureRef: refOf(as === 'template' ? infra.template!.kind : infra.kind, name),
  }
}

/**
 * Creates a Machine that refers to provider objects with its own name. Does not create these objects. Without a bootstrap provider under test,
 * creates the bootstrap Secret.
 *
 * @param bootstrap replaces the Machine's `spec.bootstrap`
 */
export async function createMachine(bench: Bench, cluster: string, name: string, bootstrap?: object): Promise<Machine> {
  const spec = await machineSpec(bench, cluster, 'object', name)
  return bench.create(Machine, {
    metadata: { name, labels: { [ClusterNameLabel]: cluster } },
    spec: { ...spec, ...(bootstrap ? { bootstrap } : {}) },
  } as Input<Machine>)
}

/**
 * Creates a MachinePool that refers to an InfraMachinePool with its own name, and to the bootstrap config `<name>-pool`. Does not create
 * these objects. Without a bootstrap provider under test, creates the bootstrap Secret.
 */
export async function createPool(bench: Bench, cluster: string, name: string, replicas: number): Promise<MachinePool> {
  const infra = bench.target.InfraMachinePool!
  // The bootstrap config has a separate name, because a Machine may have the name of the pool.
  const bootstrap = await bootstrapOf(bench, cluster, `${name}-pool`, 'object')
  const version = bench.versions.kubernetes
  return bench.create(MachinePool, {
    metadata: { name, labels: { [ClusterNameLabel]: cluster } },
    spec: {
      clusterName: cluster,
      replicas,
      template: {
        metadata: { labels: { [ClusterNameLabel]: cluster } },
        spec: { clusterName: cluster, version, bootstrap, infrastructureRef: refOf(infra.kind, name) },
      },
    },
  } as Input<MachinePool>)
}

/**
 * Creates a MachinePool with one replica, its InfraMachinePool, and its bootstrap config or bootstrap Secret. Does nothing if no kind of
 * InfraMachinePools is under test.
 */
export async function createPoolObjects(bench: Bench, cluster: string, name: string): Promise<void> {
  if (!bench.target.InfraMachinePool) return
  if (bench.target.BootstrapConfig) await createExample(bench, 'BootstrapConfig', { metadata: { name: `${name}-pool` } })
  await createExample(bench, 'InfraMachinePool', { metadata: { name } })
  await createPool(bench, cluster, name, 1)
}

/**
 * Waits until the infrastructure of a Cluster is provisioned and its control plane is initialized. If no control plane is under test, writes
 * the status of the stub.
 */
export async function untilControlPlane(bench: Bench, name: string): Promise<void> {
  const cluster = () => bench.recording.object(Cluster, name)
  await bench.until(
    `Cluster ${name} has status.initialization.infrastructureProvisioned`,
    () => cluster()?.status?.initialization?.infrastructureProvisioned === true,
  )
  bench.mark('infrastructure provisioned')
  await simulateControlPlane(bench, name)
  await bench.until(
    `Cluster ${name} has status.initialization.controlPlaneInitialized`,
    () => cluster()?.status?.initialization?.controlPlaneInitialized === true,
  )
}

/** Reports the stub control plane of a Cluster as initialized. Does nothing if a kind of control planes is under test. */
export async function simulateControlPlane(bench: Bench, name: string): Promise<void> {
  if (bench.target.ControlPlane) return
  const status = { initialization: { controlPlaneInitialized: true }, externalManagedControlPlane: true }
  await bench.patch(StubControlPlane as Kind, name, { status }, 'status')
}

/**
 * Creates the bootstrap config of a Machine; the Machine may already exist. Without a bootstrap provider under test, creates the Secret and
 * a StubBootstrapConfig whose status names the Secret.
 */
export async function createBootstrap(bench: Bench, cluster: string, name: string): Promise<void> {
  if (bench.target.BootstrapConfig) {
    await createExample(bench, 'BootstrapConfig', { metadata: { name } })
    return
  }
  const dataSecretName = await bootstrapSecret(bench, cluster, name)
  await bench.create(StubBootstrapConfig as Kind, { metadata: { name } })
  await bench.patch(
    StubBootstrapConfig as Kind,
    name,
    { status: { dataSecretName, initialization: { dataSecretCreated: true } } },
    'status',
  )
}

/** Returns `spec.bootstrap` of a Machine: a reference to a bootstrap config, which need not exist. */
export const bootstrapRef = ({ target }: Bench, name: string) => ({
  configRef: refOf(target.BootstrapConfig?.kind ?? StubBootstrapConfig, name),
})

/** Whether core reports a Machine's infrastructure as provisioned. */
export const isProvisioned = (machine: Machine | undefined): boolean =>
  machine?.status?.initialization?.infrastructureProvisioned === true

/** Waits until a Cluster and its objects of these kinds are deleted. */
export async function untilGone(bench: Bench, cluster: string, kinds: readonly Kind[] = []): Promise<void> {
  await bench.until(
    `Cluster ${cluster} is deleted`,
    () =>
      bench.recording.object(Cluster, cluster) === undefined &&
      kinds.every((kind) =>
        bench.recording.objects(kind).every(({ metadata }) => metadata.labels?.[ClusterNameLabel] !== cluster),
      ),
  )
}

/** Waits until the infrastructure of a MachinePool is provisioned. Does nothing if no kind of InfraMachinePools is under test. */
export async function untilPool(bench: Bench, poolName: string): Promise<void> {
  if (!bench.target.InfraMachinePool) return
  await bench.until(
    `MachinePool ${poolName} has infrastructure`,
    () => bench.recording.object(MachinePool, poolName)?.status?.initialization?.infrastructureProvisioned === true,
  )
}
