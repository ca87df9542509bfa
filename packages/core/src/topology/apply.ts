/**
 * Brings what exists to what is desired, in the order that makes a stop between any two writes harmless: what is referred to comes
 * before what refers to it, everything is owned by the Cluster from its first moment, and names are a function of the purpose, so
 * that the next pass finds what this one made. Upstream: core/reconcilers/topology/cluster/reconcile_state.go, v1.14; what is
 * different from it, and why, is in docs/adr.
 */
import type { Cluster } from '@capstan/api'
import {
  ClusterNameLabel,
  ClusterTopologyMachineDeploymentNameLabel,
  ClusterTopologyOwnedLabel,
  ContractVersions,
  ControlPlaneContract,
  InfraMachineTemplateContract,
  MachineDeployment,
  readField,
  TopologyDryRunAnnotation,
} from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import {
  equal,
  isDeleting,
  isReason,
  keyOf,
  keyText,
  type Kind,
  type KubeObject,
  orAbsent,
  type StatusError,
  type UnknownObject,
  wasRefused,
  writeJSON,
} from '@capstan/kube'
import type { External } from '../external/get.ts'
import type { CurrentMachineDeployment, CurrentState } from './current-state.ts'
import { type DesiredObject, type NamedInput, refToDesired, templateName } from './desired-object.ts'
import { type DesiredMachineDeployment, type DesiredState, writeMachineInfrastructureRef } from './desired-state.ts'
import { type AppliedObjects, difference, TopologyManager } from './differences.ts'
import type { WorkerVersion } from './upgrade.ts'

/** What applying needs of the pass. */
export interface Applier {
  readonly cluster: Cluster
  readonly context: ReconcileContext
  readonly applied: AppliedObjects
}

export async function applyInfrastructureCluster(applier: Applier, desired: DesiredState, current: CurrentState): Promise<void> {
  await applyObject(applier, desired.infrastructureCluster, current.infrastructureCluster)
}

/** The machine template first, in a new object when its spec has changed, then the control plane that refers to it. */
export async function applyControlPlane(applier: Applier, desired: DesiredState, current: CurrentState): Promise<void> {
  const { controlPlane, controlPlaneMachineTemplate: wanted } = desired
  const existing = current.controlPlane?.machineTemplate
  if (wanted && existing && !sameGroupKind(wanted, existing)) throw kindChanged(wanted, existing)

  const { cluster } = applier
  const template =
    wanted && (await applyTemplate(applier, wanted, existing, cluster.metadata.name, 'controlPlane.machineInfrastructure'))
  if (template) writeMachineInfrastructureRef(controlPlane, template.object, current.controlPlane?.object)
  try {
    const versionOf = (object: object) => readField(object, ControlPlaneContract.version, controlPlane.contract)
    await applyObject(applier, controlPlane, current.controlPlane, versionOf)
  } catch (err) {
    if (template?.isNew && wasRefused(err)) await discard(applier, template.object)
    throw err
  }
  if (template && existing) await removeFormerTemplates(applier, template.object)
}

/** Deletes machine templates that the control plane was made from before, also those that a stopped pass has left. */
async function removeFormerTemplates(applier: Applier, { kind, object }: DesiredObject): Promise<void> {
  const { cluster, context } = applier
  const labelSelector = `${ClusterNameLabel}=${cluster.metadata.name},${ClusterTopologyOwnedLabel}=,!${ClusterTopologyMachineDeploymentNameLabel}`
  const { items } = await context.cache.list(kind, { namespace: object.metadata.namespace, labelSelector })
  for (const template of items) {
    if (template.metadata.name === object.metadata.name || isDeleting(template) || !isOwner(cluster, template)) continue
    await remove(applier, kind, template)
  }
}

/** Creates, updates and deletes MachineDeployments; leaves alone those whose version has to wait. */
export async function applyMachineDeployments(
  applier: Applier,
  desired: DesiredState,
  current: CurrentState,
  versions: readonly WorkerVersion[],
): Promise<void> {
  for (const one of desired.machineDeployments) {
    const existing = current.machineDeployments.get(one.topology.name)
    const { state } = versions.find((version) => version.name === one.topology.name)!
    if (state === 'pendingCreate' || state === 'pending' || state === 'deferred') continue
    if (existing && isDeleting(existing.object)) continue
    await applyMachineDeployment(applier, one, existing)
  }
  const wanted = new Set(desired.machineDeployments.map((one) => one.topology.name))
  for (const [name, { object }] of current.machineDeployments) {
    if (!wanted.has(name) && !isDeleting(object)) await remove(applier, MachineDeployment, object)
  }
}

async function applyMachineDeployment(
  applier: Applier,
  desired: DesiredMachineDeployment,
  current: CurrentMachineDeployment | undefined,
): Promise<void> {
  if (!current && (await existsAlready(applier, desired))) return
  const { infrastructure } = current ?? {}
  if (infrastructure && !sameGroupKind(desired.infrastructure, infrastructure))
    throw kindChanged(desired.infrastructure, infrastructure)

  const { cluster } = applier
  const { name } = desired.topology
  const base = `${cluster.metadata.name}-${name}`
  const made: DesiredObject[] = []
  const apply = async (part: 'bootstrap' | 'infrastructure') => {
    const template = await applyTemplate(applier, desired[part], current?.[part], base, 'machineDeployments', name, part)
    if (template.isNew) made.push(template.object)
    return refToDesired(template.object)
  }
  try {
    const { spec } = desired.object.spec.template
    spec.bootstrap.configRef = await apply('bootstrap')
    spec.infrastructureRef = await apply('infrastructure')
    await applyObject(
      applier,
      asDesiredObject(desired),
      current,
      (object) => (object as MachineDeployment).spec.template.spec.version,
    )
  } catch (err) {
    // Without a plain refusal the MachineDeployment may be there, and need them.
    for (const template of wasRefused(err) ? made : []) await discard(applier, template)
    throw err
  }
}

/** Here a MachineDeployment is applied as any provider's object is. */
const asDesiredObject = ({ object }: DesiredMachineDeployment): DesiredObject => ({
  kind: MachineDeployment as unknown as Kind<UnknownObject>,
  contract: ContractVersions[0]!,
  object: object as unknown as NamedInput,
})

/** Asks the server rather than the cache, which may not have heard of the MachineDeployment yet. Its event brings us back. */
async function existsAlready({ cluster, context }: Applier, { topology }: DesiredMachineDeployment): Promise<boolean> {
  const selector = [
    `${ClusterNameLabel}=${cluster.metadata.name}`,
    `${ClusterTopologyOwnedLabel}=`,
    `${ClusterTopologyMachineDeploymentNameLabel}=${topology.name}`,
  ].join(',')
  const { namespace } = cluster.metadata
  const { items } = await context.client.list(MachineDeployment, {
    namespace: namespace!,
    labelSelector: selector,
    signal: context.signal,
  })
  return items.length > 0
}

interface AppliedTemplate {
  /** As desired, under the name that it now has. */
  readonly object: DesiredObject
  /** A new object was made, to which nothing refers yet. */
  readonly isNew: boolean
}

/**
 * Templates are not changed once something was made from them: another spec goes into a new object. Its name depends on its
 * predecessor and its content, so a stop before anything refers to it does not leave it behind for ever.
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
    if (differs === 'metadata' || (await isSameSpec(applier, desired, current))) {
      await write(applier, desired)
      return { object: desired, isNew: false }
    }
  }
  const spec = writeJSON(readField(desired.object, InfraMachineTemplateContract.spec, desired.contract) ?? null)
  const name = templateName(applier.cluster, base, ...purpose, current.object.metadata.name, spec)
  const rotated = { ...desired, object: { ...desired.object, metadata: { ...desired.object.metadata, name } } }
  await create(applier, rotated, ` as a replacement for ${JSON.stringify(current.object.metadata.name)} (template rotation)`)
  return { object: rotated, isNew: true }
}

/** What looks different may be the same to the server, which fills in defaults: it is asked before anything is rolled out. */
async function isSameSpec({ context }: Applier, { kind, object }: DesiredObject, current: External): Promise<boolean> {
  const { name } = current.object.metadata
  const annotations = { ...object.metadata.annotations, [TopologyDryRunAnnotation]: '' }
  const tried = await context.client.apply(
    kind,
    { ...object, metadata: { ...object.metadata, name, annotations } },
    { fieldManager: TopologyManager, force: true, dryRun: true, signal: context.signal },
  )
  return equal(tried['spec'], current.object['spec'])
}

/** Creates an object or changes one, when there is something to change. */
async function applyObject(
  applier: Applier,
  desired: DesiredObject,
  current: { readonly object: KubeObject } | undefined,
  versionOf: (object: object) => string | undefined = () => undefined,
): Promise<void> {
  if (!current) return create(applier, desired)
  const { object } = current
  if (object.kind !== desired.kind.kind || object.metadata.name !== desired.object.metadata.name) {
    throw new Error(
      `Cannot change ${object.kind} ${keyText(keyOf(object))} into ${desired.kind.kind} ${desired.object.metadata.name}: kind and name of an object are fixed`,
    )
  }
  if (difference(desired.object, object) === 'none' || applier.applied.isCurrent(desired.object, object)) return
  const answer = await write(applier, desired)
  if (answer.metadata.resourceVersion !== object.metadata.resourceVersion) {
    tell(
      applier,
      'TopologyUpdate',
      `Updated ${described(object, object)}${versionChange(versionOf(object), versionOf(desired.object))}`,
    )
  }
}

/** Takes over what an earlier pass made under this name; never what somebody else did. */
async function create(applier: Applier, desired: DesiredObject, why = ''): Promise<void> {
  const { kind, object } = desired
  const { cluster, context } = applier
  const existing = await orAbsent(context.client.get(kind, object.metadata, { signal: context.signal }))
  if (existing && !isOwner(cluster, existing)) {
    throw new Error(
      `Cannot create ${kind.kind} ${keyText(keyOf(existing))}: one that Cluster ${cluster.metadata.name} does not own exists already`,
    )
  }
  try {
    await write(applier, desired)
  } catch (err) {
    throw new Error(creationFailure(kind, err as Error), { cause: err })
  }
  if (!existing) tell(applier, 'TopologyCreate', `Created ${described(object, kind)}${why}`)
}

const isOwner = (cluster: Cluster, { metadata }: KubeObject): boolean =>
  metadata.ownerReferences?.some(({ uid }) => uid === cluster.metadata.uid) ?? false

async function write({ context, applied }: Applier, { kind, object }: DesiredObject): Promise<UnknownObject> {
  const answer = await context.client.apply(kind, object, { fieldManager: TopologyManager, force: true, signal: context.signal })
  applied.remember(object, answer)
  return answer
}

async function remove(applier: Applier, kind: Kind, object: KubeObject): Promise<void> {
  const { client, signal } = applier.context
  const { uid } = object.metadata
  await orAbsent(client.delete(kind, keyOf(object), { preconditions: { uid }, signal }))
  applier.applied.forget(uid)
  tell(applier, 'TopologyDelete', `Deleted ${described(object, object)}`)
}

/** Takes back a template that nothing came to refer to. If that fails too, it goes with the Cluster. */
async function discard({ context }: Applier, { kind, object }: DesiredObject): Promise<void> {
  try {
    await context.client.delete(kind, object.metadata, { signal: context.signal })
  } catch (err) {
    if (!isReason(err, 'NotFound'))
      context.log.warn('Cannot delete a template that is not used', { template: keyText(object.metadata) })
  }
}

const sameGroupKind = ({ kind }: DesiredObject, current: External): boolean =>
  kind.kind === current.kind.kind && kind.group === current.kind.group

const kindChanged = ({ kind }: DesiredObject, current: External): Error =>
  new Error(
    `Cannot replace ${current.kind.kind} ${keyText(keyOf(current.object))} by a ${kind.kind}: group and kind of infrastructure machine templates are fixed`,
  )

function tell({ cluster, context }: Applier, reason: string, message: string): void {
  context.events.event(cluster, 'Normal', reason, message)
}

const described = ({ metadata }: { metadata: Partial<KubeObject['metadata']> }, { kind }: { kind: string }): string =>
  `${kind} "${metadata.namespace}/${metadata.name}"`

/** The causes that the server gives, without the name of the object; upstream leaves out what has no cause, too. */
function creationFailure({ kind, group }: Kind, err: Error): string {
  const { details } = err as Partial<StatusError>
  const causes = (details?.causes ?? []).map(({ reason, field, message }) => `${reason}: ${field}: ${message}`)
  return `failed to create ${kind}.${group}: ${causes.length === 0 ? err.message : causes.join(' ')}`
}

/** ` with version change from v1 to v2`, for what has a version. */
const versionChange = (before: string | undefined, after: string | undefined): string =>
  before === undefined || after === undefined || before === after ? '' : ` with version change from ${before} to ${after}`
