/**
 * Applies the desired state in an order that makes a crash between any two writes harmless: referenced objects are written before their
 * references, provider objects and templates are owned by the Cluster from their creation, and names are computed from the purpose of the
 * object, so that the next reconcile finds the objects of an interrupted one.
 * Upstream: core/reconcilers/topology/cluster/reconcile_state.go, v1.14; docs/adr/0006-topology-without-shim.md describes the differences,
 * and docs/adr/0045-owners-of-topology-objects.md the owner references.
 */
import type { Cluster } from '@capstan/api'
import {
  ClusterNameLabel,
  ClusterTopologyMachineDeploymentNameLabel,
  ClusterTopologyMachinePoolNameLabel,
  ClusterTopologyOwnedLabel,
  ContractVersions,
  ControlPlaneContract,
  InfraMachineTemplateContract,
  MachineDeployment,
  MachinePool,
  readField,
  TopologyDryRunAnnotation,
} from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import {
  CustomResourceDefinition,
  equal,
  isDeleting,
  isReason,
  keyOf,
  keyText,
  type Kind,
  type KubeObject,
  messageOf,
  type ObjectKey,
  orAbsent,
  parseApiVersion,
  type StatusError,
  type UnknownObject,
  wasRejected,
  withErrorContext,
  writeJSON,
} from '@capstan/kube'
import { applyToExisting } from '../apply-intent.ts'
import type { External } from '../external/get.ts'
import type { CurrentMachineDeployment, CurrentMachinePool, CurrentState } from './current-state.ts'
import { type DesiredObject, type NamedInput, refToDesired, templateName } from './desired-state/desired-object.ts'
import {
  type DesiredMachineDeployment,
  type DesiredMachinePool,
  type DesiredState,
  writeMachineInfrastructureRef,
} from './desired-state/desired-state.ts'
import { type AppliedObjects, difference, dryRunError, TopologyManager } from './differences.ts'
import { applyHealthCheck } from './desired-state/health-checks.ts'
import { concernedClusters } from './concerned-clusters.ts'
import type { WorkerVersion } from './upgrade/upgrade.ts'

/** Inputs of the functions that apply objects. */
export interface Applier {
  readonly cluster: Cluster
  readonly context: ReconcileContext
  readonly applied: AppliedObjects
}

export async function applyInfrastructureCluster(applier: Applier, desired: DesiredState, current: CurrentState): Promise<void> {
  await applyObject(applier, desired.infrastructureCluster, current.infrastructureCluster)
}

/**
 * Applies the machine template first, as a new object when its spec changed, then the control plane that refers to it. Finally deletes
 * earlier machine templates.
 */
export async function applyControlPlane(applier: Applier, desired: DesiredState, current: CurrentState): Promise<void> {
  const { controlPlane, controlPlaneMachineTemplate: machineTemplate } = desired
  const existing = current.controlPlane?.machineTemplate
  if (machineTemplate && existing) checkCompatible(machineTemplate, existing.object)

  const { cluster } = applier
  const template =
    machineTemplate &&
    (await applyTemplate(applier, machineTemplate, existing, cluster.metadata.name, 'controlPlane.machineInfrastructure'))
  if (template) writeMachineInfrastructureRef(controlPlane, template.object, current.controlPlane?.object)
  try {
    const versionOf = (object: object) => readField(object, ControlPlaneContract.version, controlPlane.contract)
    await applyObject(applier, controlPlane, current.controlPlane, versionOf)
  } catch (err) {
    if (template?.isNew && wasRejected(err)) await deleteUnused(applier, template.object)
    throw err
  }
  if (template && existing) await removeFormerTemplates(applier, template.object)
}

/** Deletes earlier machine templates of the control plane, including those of an interrupted reconcile. As upstream, without an event. */
async function removeFormerTemplates(applier: Applier, { kind, object }: DesiredObject): Promise<void> {
  const { cluster, context } = applier
  const labelSelector = `${ClusterNameLabel}=${cluster.metadata.name},${ClusterTopologyOwnedLabel}=,!${ClusterTopologyMachineDeploymentNameLabel},!${ClusterTopologyMachinePoolNameLabel}`
  const { items } = await context.cache.list(kind, { namespace: object.metadata.namespace, labelSelector })
  for (const template of items) {
    if (template.metadata.name === object.metadata.name || isDeleting(template) || !isOwnedByCluster(cluster, template)) continue
    await removeSilently(applier, kind, template)
  }
}

/**
 * Creates, updates and deletes MachineDeployments and their MachineHealthChecks. Does not write MachineDeployments that must wait or are
 * being deleted.
 */
export async function applyMachineDeployments(
  applier: Applier,
  desired: DesiredState,
  current: CurrentState,
  versions: readonly WorkerVersion[],
): Promise<void> {
  for (const deployment of newFirst(desired.machineDeployments, current.machineDeployments)) {
    const existing = current.machineDeployments.get(deployment.topology.name)
    const { state } = versions.find((version) => version.name === deployment.topology.name)!
    // `template-cleanup.ts` deletes the health check with the MachineDeployment. Upstream creates the health check again.
    if (existing && isDeleting(existing.object)) continue
    if (existing) await applyHealthCheck(applier, deployment.healthCheck, existing.healthCheck)
    if (state === 'pendingCreate' || state === 'pending' || state === 'deferred') continue
    await applyMachineDeployment(applier, deployment, existing)
    if (!existing) await applyHealthCheck(applier, deployment.healthCheck, undefined)
  }
  const desiredNames = new Set(desired.machineDeployments.map((deployment) => deployment.topology.name))
  for (const [name, { object, healthCheck }] of current.machineDeployments) {
    if (desiredNames.has(name)) continue
    await applyHealthCheck(applier, undefined, healthCheck)
    if (!isDeleting(object)) await remove(applier, MachineDeployment, object)
  }
}

/**
 * Puts the MachineDeployments or MachinePools that do not exist yet first, so that a failed update of an existing one does not prevent
 * their creation.
 */
function newFirst<T extends { readonly topology: { readonly name: string } }>(
  desired: readonly T[],
  current: ReadonlyMap<string, unknown>,
): T[] {
  const exists = ({ topology }: T) => current.has(topology.name)
  return [...desired.filter((worker) => !exists(worker)), ...desired.filter(exists)]
}

/** Creates, updates and deletes MachinePools. Does not write MachinePools that must wait or are being deleted. */
export async function applyMachinePools(
  applier: Applier,
  desired: DesiredState,
  current: CurrentState,
  versions: readonly WorkerVersion[],
): Promise<void> {
  for (const pool of newFirst(desired.machinePools, current.machinePools)) {
    const existing = current.machinePools.get(pool.topology.name)
    const { state } = versions.find((version) => version.name === pool.topology.name)!
    if (state === 'pendingCreate' || state === 'pending' || state === 'deferred') continue
    if (existing && isDeleting(existing.object)) continue
    await applyMachinePool(applier, pool, existing)
  }
  const desiredNames = new Set(desired.machinePools.map((pool) => pool.topology.name))
  for (const [name, { object }] of current.machinePools) {
    if (!desiredNames.has(name) && !isDeleting(object)) await remove(applier, MachinePool, object)
  }
}

/** Applies infrastructure and bootstrap config, which are changed in place, then the MachinePool that refers to them. */
async function applyMachinePool(
  applier: Applier,
  desired: DesiredMachinePool,
  current: CurrentMachinePool | undefined,
): Promise<void> {
  const { infrastructure, bootstrap, object, topology } = desired
  if (!current && (await existsOnServer(applier, MachinePool, ClusterTopologyMachinePoolNameLabel, topology.name))) return
  try {
    await withErrorContext(partError(MachinePool, current), async () => {
      await applyObject(applier, infrastructure, current?.infrastructure)
      await applyObject(applier, bootstrap, current?.bootstrap)
    })
    await applyObject(applier, asDesiredObject(MachinePool, object), current, versionOfWorkers)
  } catch (err) {
    // Unless the request was rejected, the MachinePool may exist and need these objects.
    if (!current && wasRejected(err))
      for (const providerObject of [infrastructure, bootstrap]) await deleteUnused(applier, providerObject)
    throw err
  }
}

async function applyMachineDeployment(
  applier: Applier,
  desired: DesiredMachineDeployment,
  current: CurrentMachineDeployment | undefined,
): Promise<void> {
  if (
    !current &&
    (await existsOnServer(applier, MachineDeployment, ClusterTopologyMachineDeploymentNameLabel, desired.topology.name))
  )
    return
  const { cluster } = applier
  const { name } = desired.topology
  const base = `${cluster.metadata.name}-${name}`
  const newTemplates: DesiredObject[] = []
  const apply = async (part: 'bootstrap' | 'infrastructure') => {
    const existing = current?.[part]
    const template = await withErrorContext(partError(MachineDeployment, current), async () => {
      if (part === 'infrastructure' && existing) checkCompatible(desired[part], existing.object)
      return await applyTemplate(applier, desired[part], existing, base, 'machineDeployments', name, part)
    })
    if (template.isNew) newTemplates.push(template.object)
    return refToDesired(template.object)
  }
  try {
    const { spec } = desired.object.spec.template
    spec.infrastructureRef = await apply('infrastructure')
    spec.bootstrap.configRef = await apply('bootstrap')
    await applyObject(applier, asDesiredObject(MachineDeployment, desired.object), current, versionOfWorkers)
  } catch (err) {
    // Unless the request was rejected, the MachineDeployment may exist and need its templates.
    for (const template of wasRejected(err) ? newTemplates : []) await deleteUnused(applier, template)
    throw err
  }
}

/** Returns the prefix of errors about objects that a MachineDeployment or MachinePool refers to. */
const partError = ({ kind }: Kind, current: { readonly object: KubeObject } | undefined): string =>
  current ? `failed to reconcile ${kind} ${keyText(keyOf(current.object))}` : `failed to create ${kind}`

/** Wraps a MachineDeployment or MachinePool, so that it is applied like an object of a provider. */
const asDesiredObject = <T extends KubeObject>(kind: Kind<T>, object: object): DesiredObject => ({
  kind: kind as unknown as Kind<UnknownObject>,
  contract: ContractVersions[0]!,
  object: object as NamedInput,
})

const versionOfWorkers = (object: object): string | undefined =>
  (object as MachineDeployment | MachinePool).spec.template.spec.version

/**
 * Reports whether a MachineDeployment or MachinePool that the cache does not contain exists on the API server. If so, its watch event
 * triggers the next reconcile.
 */
async function existsOnServer<T extends KubeObject>(
  { cluster, context }: Applier,
  kind: Kind<T>,
  label: string,
  topologyName: string,
): Promise<boolean> {
  const labels = [`${ClusterNameLabel}=${cluster.metadata.name}`, `${ClusterTopologyOwnedLabel}=`, `${label}=${topologyName}`]
  const { namespace } = cluster.metadata
  const labelSelector = labels.join(',')
  const { items } = await context.client.list(kind, { namespace: namespace!, labelSelector, signal: context.signal })
  return items.length > 0
}

interface AppliedTemplate {
  /** The desired object with its current name. */
  readonly object: DesiredObject
  /** Whether the object is new, so that nothing refers to it yet. */
  readonly isNew: boolean
}

/**
 * Applies a template and returns it with its current name. Templates are immutable once used: a changed spec is written to a new object.
 * Its name begins with `base`, and ends with characters that are computed from the purpose, the predecessor's name and the spec, so that the
 * next reconcile finds the object after a crash.
 */
async function applyTemplate(
  applier: Applier,
  desired: DesiredObject,
  current: External | undefined,
  base: string,
  ...purpose: readonly string[]
): Promise<AppliedTemplate> {
  if (!current) {
    await create(applier, desired)
    return { object: desired, isNew: true }
  }
  if (sameGroupKind(desired, current)) {
    const differs = difference(desired.object, current.object)
    if (differs === 'none' || applier.applied.isCurrent(desired.object, current.object)) return { object: desired, isNew: false }
    const failure = dryRunError(current.kind.kind, current.object)
    if (differs === 'metadata' || (await withErrorContext(failure, () => hasSameSpec(applier, desired, current)))) {
      await withErrorContext(failure, () => update(applier, desired, current.object, ' (metadata changes)'))
      return { object: desired, isNew: false }
    }
  } else {
    await rejectOtherGroupKind(applier, desired, current)
  }
  const spec = writeJSON(readField(desired.object, InfraMachineTemplateContract.spec, desired.contract) ?? null)
  const name = templateName(applier.cluster, base, ...purpose, current.object.metadata.name, spec)
  const rotated = { ...desired, object: { ...desired.object, metadata: { ...desired.object.metadata, name } } }
  await create(applier, rotated, ` as a replacement for ${JSON.stringify(current.object.metadata.name)} (template rotation)`)
  return { object: rotated, isNew: true }
}

/**
 * Determines by dry runs whether the desired spec, with the server's defaults, equals the current spec, so that no new template is needed.
 * If the specs differ, applies the current object in a dry run, too: the stored object may lack defaults that a newer version of the provider
 * sets.
 */
export async function hasSameSpec(applier: Applier, desired: DesiredObject, current: External): Promise<boolean> {
  const { apiVersion, kind, metadata, spec } = current.object
  const { name, namespace, uid, labels, annotations } = metadata
  const desiredResult = await dryRun(applier, desired, { name, uid })
  if (equal(desiredResult['spec'], spec)) return true
  const object = { apiVersion, kind, metadata: { name, namespace: namespace!, labels, annotations }, spec } as NamedInput
  const currentResult = await dryRun(applier, { ...current, object }, { name, uid })
  return equal(desiredResult['spec'], currentResult['spec'])
}

/**
 * Applies a desired template of another group or kind in a dry run, with the name and uid of the current template. As upstream, the API
 * server rejects this request, because no object of the other kind has this uid: the group and kind of a bootstrap template cannot change.
 */
async function rejectOtherGroupKind(applier: Applier, desired: DesiredObject, { kind, object }: External): Promise<void> {
  const { name, uid } = object.metadata
  try {
    await dryRun(applier, desired, { name, uid })
  } catch (err) {
    // The error has no cause: errors whose cause is a Conflict are not reported (`onlyConflicts`), but this conflict is permanent.
    throw new Error(`${dryRunError(kind.kind, object)}: ${messageOf(err)}`)
  }
}

function dryRun(
  { context }: Applier,
  { kind, object }: DesiredObject,
  identity: { readonly name: string; readonly uid: string },
): Promise<KubeObject & { readonly [field: string]: unknown }> {
  const annotations = { ...object.metadata.annotations, [TopologyDryRunAnnotation]: '' }
  return context.client.apply(
    kind,
    { ...object, metadata: { ...object.metadata, ...identity, annotations } },
    { fieldManager: TopologyManager, force: true, dryRun: true, signal: context.signal },
  )
}

/** Creates an object or updates it when there is a difference. */
async function applyObject(
  applier: Applier,
  desired: DesiredObject,
  current: { readonly object: KubeObject } | undefined,
  versionOf: (object: object) => string | undefined = () => undefined,
): Promise<void> {
  if (!current) return create(applier, desired)
  const { object } = current
  checkCompatible(desired, object)
  if (difference(desired.object, object) === 'none' || applier.applied.isCurrent(desired.object, object)) return
  const suffix = versionChange(versionOf(object), versionOf(desired.object))
  await withErrorContext(dryRunError(object.kind, object), () => update(applier, desired, object, suffix))
}

/** Applies an object that exists. Records an event with the suffix if this changes the object. */
async function update(applier: Applier, desired: DesiredObject, current: KubeObject, suffix: string): Promise<void> {
  const { metadata } = await write(applier, desired, current)
  if (metadata.resourceVersion === current.metadata.resourceVersion) return
  recordEvent(applier, 'TopologyUpdate', `Updated ${objectText(current, current)}${suffix}`)
}

/** Creates an object, or applies it again if an earlier reconcile created it. Fails for an object of the same name by another creator. */
async function create(applier: Applier, desired: DesiredObject, suffix = ''): Promise<void> {
  const { kind, object } = desired
  const { cluster, context } = applier
  const existing = await find(context, kind, object.metadata)
  if (existing && !isOwnedByCluster(cluster, existing) && !awaitsOwner(cluster, object, existing)) {
    throw new Error(
      `Cannot create ${kind.kind} ${keyText(keyOf(existing))}: it exists already, and Cluster ${cluster.metadata.name} does not own it`,
    )
  }
  try {
    await write(applier, desired)
  } catch (err) {
    throw new Error(creationFailure(kind, err as Error), { cause: err })
  }
  if (!existing) recordEvent(applier, 'TopologyCreate', `Created ${objectText(object, kind)}${suffix}`)
}

/**
 * Reads an object from the cache. The cache contains the objects of earlier reconciles, because the next reconcile of a Cluster waits, up to
 * ten seconds, for the writes of the last one. If the kind has no CustomResourceDefinition, reads from the API server.
 */
async function find(context: ReconcileContext, kind: Kind<UnknownObject>, key: ObjectKey): Promise<UnknownObject | undefined> {
  const { cache, client, signal } = context
  await context.watch(CustomResourceDefinition, () => [])
  // The first list of a kind that is not served would never complete.
  const isServed = cache.peek(CustomResourceDefinition, { name: `${kind.plural}.${kind.group}` }) !== undefined
  if (!isServed) return orAbsent(client.get(kind, key, { signal }))
  await context.watch(kind, concernedClusters)
  return cache.peek(kind, key)
}

/** Reports whether the object's own controller has yet to set the owner, as for MachineDeployments and MachinePools after their creation. */
const awaitsOwner = (cluster: Cluster, desired: NamedInput, { metadata }: KubeObject): boolean =>
  desired.metadata.ownerReferences === undefined &&
  metadata.ownerReferences === undefined &&
  metadata.labels?.[ClusterNameLabel] === cluster.metadata.name &&
  metadata.labels[ClusterTopologyOwnedLabel] !== undefined

const isOwnedByCluster = (cluster: Cluster, { metadata }: KubeObject): boolean =>
  metadata.ownerReferences?.some(({ uid }) => uid === cluster.metadata.uid) ?? false

/** Applies an object, without creating it again when `current` was deleted meanwhile. */
async function write(
  { context, applied }: Applier,
  { kind, object }: DesiredObject,
  current?: KubeObject,
): Promise<UnknownObject> {
  const { client, signal } = context
  const written = current
    ? await applyToExisting(context, kind, current, object, TopologyManager)
    : await client.apply(kind, object, { fieldManager: TopologyManager, force: true, signal })
  applied.record(object, written)
  return written
}

async function removeSilently(applier: Applier, kind: Kind, object: KubeObject): Promise<void> {
  const { client, signal } = applier.context
  const { uid } = object.metadata
  await orAbsent(client.delete(kind, keyOf(object), { preconditions: { uid }, signal }))
  applier.applied.forget(uid)
}

async function remove(applier: Applier, kind: Kind, object: KubeObject): Promise<void> {
  const failure = `failed to delete ${kind.kind} ${keyText(keyOf(object))}`
  await withErrorContext(failure, () => removeSilently(applier, kind, object))
  recordEvent(applier, 'TopologyDelete', `Deleted ${objectText(object, object)}`)
}

/** Deletes a created object that is not referenced. If that fails, the object is deleted with the Cluster, which owns it. */
async function deleteUnused({ context }: Applier, { kind, object }: DesiredObject): Promise<void> {
  try {
    await context.client.delete(kind, object.metadata, { signal: context.signal })
  } catch (err) {
    if (!isReason(err, 'NotFound'))
      context.log.warn('Cannot delete an object that is not used', { object: keyText(object.metadata) })
  }
}

const sameGroupKind = ({ kind }: DesiredObject, current: External): boolean =>
  kind.kind === current.kind.kind && kind.group === current.kind.group

/**
 * Rejects a desired object with another name, group or kind than the current one. Upstream: ObjectsAreStrictlyCompatible.
 * @throws Error
 */
function checkCompatible({ kind: desired, object }: DesiredObject, current: KubeObject): void {
  const { name } = current.metadata
  const { group } = parseApiVersion(current.apiVersion)
  const problem = (path: string, field: string, from: string, to: string) =>
    from === to
      ? []
      : [
          `metadata.${path}: Forbidden: ${field} of ${current.kind}.${group}/${name} cannot be changed from ${JSON.stringify(from)} to ${JSON.stringify(to)} to prevent incompatible changes in the Cluster`,
        ]
  const problems = [
    ...problem('name', 'metadata.name', name, object.metadata.name),
    ...problem('apiVersion', 'apiVersion.group', group, desired.group),
    ...problem('kind', 'apiVersion.kind', current.kind, desired.kind),
  ]
  if (problems.length > 0) throw new Error(problems.length === 1 ? problems[0] : `[${problems.join(', ')}]`)
}

function recordEvent({ cluster, context }: Applier, reason: string, message: string): void {
  context.events.event(cluster, 'Normal', reason, message)
}

const objectText = ({ metadata }: { metadata: Partial<KubeObject['metadata']> }, { kind }: { kind: string }): string =>
  `${kind} "${metadata.namespace}/${metadata.name}"`

/** Returns an error text with the causes from the server's error. As upstream, the text does not contain the object's generated name. */
function creationFailure({ kind, group }: Kind, err: Error): string {
  const { details } = err as Partial<StatusError>
  // For example, the error for a kind that is not served has no details.
  if (details?.kind === undefined) return `failed to create ${kind}.${group}`
  const causes = (details.causes ?? []).map(({ reason, field, message }) => `${reason ?? ''}: ${field ?? ''}: ${message ?? ''}`)
  const created = `failed to create ${details.kind}.${details.group ?? ''}`
  return causes.length === 0 ? created : `${created}: ${causes.join(' ')}`
}

/** Formats ` with version change from v1 to v2`; empty without a change. */
const versionChange = (from: string | undefined, to: string | undefined): string =>
  from === undefined || to === undefined || from === to ? '' : ` with version change from ${from} to ${to}`
