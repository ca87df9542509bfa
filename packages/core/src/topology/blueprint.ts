/**
 * Reads the blueprint of a Cluster: its topology, its ClusterClass, and the templates of the ClusterClass for the infrastructure cluster,
 * the control plane, bootstrap data, machines and machine pools.
 */
import type {
  Cluster,
  ClusterTopology,
  ControlPlaneClass,
  ControlPlaneTopology,
  MachineDeploymentClass,
  MachinePoolClass,
} from '@capstan/api'
import { ClusterClass, ClusterClassConditions } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import {
  CustomResourceDefinition,
  getCondition,
  isFalse,
  keyOf,
  keyText,
  type Kind,
  type ObjectKey,
  orAbsent,
} from '@capstan/kube'
import { externalKindOf } from '../external/contract-version.ts'
import type { External, TemplateRef } from '../external/get.ts'
import { classKeyOf } from '../indexes.ts'
import { concernedClusters } from './concerned-clusters.ts'

/** The topology of a Cluster, with its ClusterClass and the templates of the ClusterClass. */
export interface Blueprint {
  readonly topology: ClusterTopology
  readonly class: ClusterClass
  readonly infrastructureCluster: External
  readonly controlPlane: {
    readonly class: ControlPlaneClass
    readonly topology: ControlPlaneTopology
    readonly template: External
    /** Absent when the class does not run the control plane on Machines. */
    readonly machineTemplate: External | undefined
  }
  /** MachineDeployment classes with their templates, by name of the class. */
  readonly machineDeployments: ReadonlyMap<string, MachineDeploymentBlueprint>
  /** MachinePool classes with their templates, by name of the class. */
  readonly machinePools: ReadonlyMap<string, MachinePoolBlueprint>
}

export interface MachinePoolBlueprint {
  readonly class: MachinePoolClass
  readonly bootstrap: External
  readonly infrastructure: External
}

export interface MachineDeploymentBlueprint {
  readonly class: MachineDeploymentClass
  readonly bootstrap: External
  readonly infrastructure: External
}

/**
 * Error for a topology that cannot be reconciled until a watched object changes, such as its ClusterClass or a template. An earlier retry
 * does not help.
 */
export class NotReadyYet extends Error {
  override readonly name = 'NotReadyYet'
}

/**
 * Returns the ClusterClass of a Cluster with a topology.
 * @throws NotReadyYet while the ClusterClass does not exist, or cannot be used yet (`classProblem`)
 */
export async function observeClass(cluster: Cluster, { cache }: Pick<ReconcileContext, 'cache'>): Promise<ClusterClass> {
  const key = classKeyOf(cluster)
  const clusterClass = cache.peek(ClusterClass, key)
  if (!clusterClass)
    throw new NotReadyYet(
      `failed to retrieve ClusterClass ${keyText(key)}: ClusterClass.cluster.x-k8s.io "${key.name}" not found`,
    )
  const problem = classProblem(clusterClass)
  if (problem !== undefined) throw new NotReadyYet(`ClusterClass is not successfully reconciled: ${problem}`)
  return clusterClass
}

/** Returns why a class cannot be used yet; `undefined` for a usable class. Pure. */
export function classProblem({ metadata, status = {} }: ClusterClass): string | undefined {
  const { type } = ClusterClassConditions.VariablesReady
  if (!getCondition(status.conditions ?? [], type) || isFalse(status.conditions ?? [], type)) {
    return `status of ${type} condition on ClusterClass must be "True"`
  }
  const generation = metadata.generation ?? 0
  const observed = status.observedGeneration ?? 0
  if (generation === observed) return undefined
  return `ClusterClass.status.observedGeneration must be ${generation}, but is ${observed}`
}

/**
 * Reads the templates of the ClusterClass, and watches their kinds for changes.
 * @throws NotReadyYet while a template does not exist; another Error when the CustomResourceDefinition of its kind does not exist or has
 * no supported contract for its version
 */
export async function observeBlueprint(
  topology: ClusterTopology,
  clusterClass: ClusterClass,
  context: ReconcileContext,
): Promise<Blueprint> {
  const className = keyText({ namespace: clusterClass.metadata.namespace!, name: clusterClass.metadata.name })
  const read = async (description: string, ref: TemplateRef, suffix = ''): Promise<External> => {
    try {
      return await observeTemplate(ref, clusterClass.metadata.namespace!, context)
    } catch (err) {
      const Wrapped = err instanceof NotReadyYet ? NotReadyYet : Error
      const reason = err instanceof Error ? err.message : String(err)
      throw new Wrapped(
        `error reading the ClusterClass: failed to get ${description} for ClusterClass ${className}${suffix}: ${reason}`,
        {
          cause: err,
        },
      )
    }
  }

  const { infrastructure, controlPlane, workers } = clusterClass.spec
  const infrastructureCluster = await read('infrastructure cluster template', infrastructure.templateRef)
  const template = await read('control plane template', controlPlane.templateRef)
  const machineRef = controlPlane.machineInfrastructure?.templateRef
  const machineTemplate = machineRef && (await read("control plane's machine template", machineRef))

  const machineDeployments = new Map<string, MachineDeploymentBlueprint>()
  for (const workerClass of workers?.machineDeployments ?? []) {
    const suffix = `, MachineDeployment class ${JSON.stringify(workerClass.class)}`
    machineDeployments.set(workerClass.class, {
      class: workerClass,
      infrastructure: await read('infrastructure machine template', workerClass.infrastructure.templateRef, suffix),
      bootstrap: await read('bootstrap config template', workerClass.bootstrap.templateRef, suffix),
    })
  }
  const machinePools = new Map<string, MachinePoolBlueprint>()
  for (const workerClass of workers?.machinePools ?? []) {
    const suffix = `, MachinePool class ${JSON.stringify(workerClass.class)}`
    machinePools.set(workerClass.class, {
      class: workerClass,
      infrastructure: await read('InfrastructureMachinePoolTemplate', workerClass.infrastructure.templateRef, suffix),
      bootstrap: await read('bootstrap config', workerClass.bootstrap.templateRef, suffix),
    })
  }
  return {
    topology,
    class: clusterClass,
    infrastructureCluster,
    controlPlane: { class: controlPlane, topology: topology.controlPlane ?? {}, template, machineTemplate },
    machineDeployments,
    machinePools,
  }
}

/** Returns the MachineDeployment class with this name, and its templates. @throws Error when the ClusterClass has none */
export function blueprintOf({ machineDeployments, class: clusterClass }: Blueprint, name: string): MachineDeploymentBlueprint {
  const blueprint = machineDeployments.get(name)
  if (!blueprint) throw new Error(`MachineDeployment class ${name} not found in ClusterClass ${keyText(keyOf(clusterClass))}`)
  return blueprint
}

/** Returns the MachinePool class with this name, and its templates. @throws Error when the ClusterClass has none */
export function poolBlueprintOf({ machinePools, class: clusterClass }: Blueprint, name: string): MachinePoolBlueprint {
  const blueprint = machinePools.get(name)
  if (!blueprint) throw new Error(`MachinePool class ${name} not found in ClusterClass ${keyText(keyOf(clusterClass))}`)
  return blueprint
}

async function observeTemplate(ref: TemplateRef, namespace: string, context: ReconcileContext): Promise<External> {
  const { cache, client, signal } = context
  await context.watch(CustomResourceDefinition, () => [])
  const external = await externalKindOf(cache, ref)
  await context.watch(external.kind, concernedClusters)
  const key = { namespace, name: ref.name }
  const object = cache.peek(external.kind, key) ?? (await orAbsent(client.get(external.kind, key, { signal })))
  if (object) return { ...external, object }
  throw new NotReadyYet(cannotRetrieve(external.kind, key))
}

/** Error text for a referenced object that does not exist. As upstream, the prefix occurs twice. */
export function cannotRetrieve({ kind, group }: Pick<Kind, 'kind' | 'group'>, key: ObjectKey): string {
  const problem = `failed to retrieve ${kind} ${keyText(key)}`
  return `${problem}: ${problem}: ${kind}.${group} "${key.name}" not found`
}
