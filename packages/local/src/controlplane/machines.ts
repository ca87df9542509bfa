/** Creates the Machines of a control plane with their infrastructure and bootstrap configs, and updates fields that need no replacement. */
import {
  clonedKind,
  ClusterNameLabel,
  fromTemplate,
  labelValue,
  latestContract,
  Machine,
  MachineControlPlaneLabel,
  MachineControlPlaneNameLabel,
  MachineFinalizer,
  pluralOf,
} from '@capstan/api'
import { commitChanges, type ReconcileContext } from '@capstan/controller'
import {
  controllerOf,
  controllerReference,
  CustomResourceDefinition,
  draft,
  type Input,
  isDeleting,
  isOwnedBy,
  type Kind,
  type KubeObject,
  keyOf,
  ownerReference,
  randomSuffix,
  setConditions,
  setControllerReference,
  unknownKind,
  type UnknownObject,
} from '@capstan/kube'
import { LocalBootstrapConfig } from '../kinds/local-bootstrap-config.ts'
import { LocalControlPlane, machineTemplateOf } from '../kinds/local-control-plane.ts'
import { propagateMetadata, templatedMetadata } from './metadata.ts'
import { RemediationForAnnotation, RemediationInProgressAnnotation } from './remediation.ts'
import type { ControlPlaneScope } from './scope.ts'
import { upToDateCondition } from './status.ts'
import { type MachineParts, outdatedReasons } from './up-to-date.ts'

/** Returns the kind of a contract reference, in the API version that its CustomResourceDefinition declares for the contract. */
export function referencedKind(
  { apiGroup, kind }: { apiGroup: string; kind: string },
  io: ReconcileContext,
): Kind<UnknownObject> {
  const plural = pluralOf(kind)
  const crd = io.cache.peek(CustomResourceDefinition, { name: `${plural}.${apiGroup}` })
  if (!crd) throw new Error(`Cannot use ${kind}.${apiGroup}: CustomResourceDefinition ${plural}.${apiGroup} does not exist`)
  return unknownKind({ apiVersion: `${apiGroup}/${latestContract(crd).version}`, kind, plural })
}

/** Reads the infrastructure and bootstrap config of a Machine. */
export async function readMachineParts(
  machine: Machine,
  io: ReconcileContext,
): Promise<MachineParts & { infrastructureKind: Kind<UnknownObject> }> {
  const { infrastructureRef, bootstrap } = machine.spec
  const { namespace } = machine.metadata
  const infrastructureKind = referencedKind(infrastructureRef, io)
  // The watch only fills the cache: changes of these objects reach the control plane through the status of the Machine.
  await io.watch(infrastructureKind, () => [])
  return {
    machine,
    infrastructureKind,
    infrastructure: io.cache.peek(infrastructureKind, { namespace: namespace!, name: infrastructureRef.name }),
    bootstrap:
      bootstrap.configRef && io.cache.peek(LocalBootstrapConfig, { namespace: namespace!, name: bootstrap.configRef.name }),
  }
}

/**
 * Creates one Machine: its infrastructure and bootstrap config first, then the Machine that refers to both. After an interrupted reconcile,
 * the next reconcile finds the infrastructure by its owner, and the bootstrap config by the same name, and continues.
 */
export async function createMachine(
  scope: ControlPlaneScope,
  template: UnknownObject,
  failureDomain: string | undefined,
  io: ReconcileContext,
): Promise<Machine> {
  const { controlPlane, cluster } = scope
  const { namespace } = controlPlane.metadata
  const infrastructureKind = clonedKind(referencedKind(machineTemplateOf(controlPlane).spec.infrastructureRef, io))
  await io.watch(infrastructureKind, () => [])

  const leftover = await findLeftover(scope, infrastructureKind, io)
  const name = leftover ?? machineName(controlPlane, cluster.metadata.name, randomSuffix(io.random))
  const key = { namespace: namespace!, name }
  const metadata = machineMetadata(scope)
  const owner = ownerReference(controlPlane, LocalControlPlane)
  if (leftover === undefined) {
    const clone = fromTemplate(template, { ...key, clusterName: cluster.metadata.name, ...metadata, owner })
    // Applied rather than created, so that a later in-place update can remove fields that were removed from the template.
    await io.client.apply(infrastructureKind, clone, { fieldManager: InfrastructureManager, force: true })
  }
  if (!io.cache.peek(LocalBootstrapConfig, key)) {
    await io.client.create(LocalBootstrapConfig, {
      metadata: { ...key, ...metadata, ownerReferences: [owner] },
      spec: controlPlane.spec.bootstrapConfigSpec ?? {},
    })
  }
  return io.client.create(Machine, desiredMachine(scope, name, failureDomain, infrastructureKind))
}

/** Field manager of infrastructure machines. */
export const InfrastructureManager = 'capstan-localcontrolplane'

/** Returns the Machine to create. Pure. */
export function desiredMachine(
  scope: ControlPlaneScope,
  name: string,
  failureDomain: string | undefined,
  infrastructureKind: Pick<Kind, 'group' | 'kind'>,
): Input<Machine> {
  const { controlPlane, cluster } = scope
  const { version } = controlPlane.spec
  const machineTemplate = machineTemplateOf(controlPlane)
  const { labels, annotations } = machineMetadata(scope)
  const remediationRecord = controlPlane.metadata.annotations?.[RemediationInProgressAnnotation]
  return {
    metadata: {
      name,
      namespace: controlPlane.metadata.namespace!,
      labels,
      annotations: {
        ...annotations,
        ...(remediationRecord === undefined ? {} : { [RemediationForAnnotation]: remediationRecord }),
      },
      // Set as by upstream's MachineSets, so that core need not add it.
      finalizers: [MachineFinalizer],
      ownerReferences: [controllerReference(controlPlane, LocalControlPlane)],
    },
    spec: {
      clusterName: cluster.metadata.name,
      version,
      ...propagatedFieldsOf(machineTemplate.spec),
      ...(failureDomain === undefined ? {} : { failureDomain }),
      infrastructureRef: { apiGroup: infrastructureKind.group, kind: infrastructureKind.kind, name },
      bootstrap: { configRef: { apiGroup: LocalBootstrapConfig.group, kind: LocalBootstrapConfig.kind, name } },
    },
  }
}

/**
 * Writes the fields that need no rollout to an existing Machine (metadata, the spec fields of `propagatedFieldsOf`, the UpToDate condition),
 * and the metadata to its infrastructure and bootstrap config. Writes only differences, and nothing to a Machine that is being deleted.
 * Returns the updated Machine, with the reasons why it is not up to date.
 */
export async function syncMachine(
  scope: ControlPlaneScope,
  existing: Machine,
  io: ReconcileContext,
): Promise<ControlPlaneScope['machines'][number]> {
  const { controlPlane } = scope
  const parts = await readMachineParts(existing, io)
  const outdated = outdatedReasons(controlPlane, parts, io.clock.now())
  if (isDeleting(existing)) return { machine: existing, outdated }

  const machine = draft(existing)
  // As upstream, control plane Machines without a controller are adopted.
  if (!controllerOf(machine)) setControllerReference(machine, controlPlane, LocalControlPlane)
  const templated = machineTemplateOf(controlPlane).metadata ?? {}
  propagateMetadata(machine, templated)
  const { deletion: _, taints: _taints, readinessGates: _gates, minReadySeconds: _seconds, ...otherFields } = machine.spec
  machine.spec = { ...otherFields, ...draft(propagatedFieldsOf(machineTemplateOf(controlPlane).spec)) }
  const reported = existing.status?.conditions?.find(({ type }) => type === 'UpToDate')
  // Until the Machine has a Node, core changes its spec and status step by step: writing this condition for each new generation would
  // conflict with core's writes.
  const generation = existing.status?.nodeRef
    ? existing.metadata.generation
    : (reported?.observedGeneration ?? existing.metadata.generation)
  const conditions = setConditions(existing.status?.conditions, [upToDateCondition(existing, outdated)], {
    now: io.clock.now(),
    generation,
  })
  machine.status = { ...machine.status, conditions }
  const latest = await commitChanges(io.client, Machine, existing, machine, {
    conditions: ['UpToDate'],
    cache: io.cache,
    signal: io.signal,
  })
  await syncMetadata(parts.infrastructureKind, parts.infrastructure, templated, io)
  await syncMetadata(LocalBootstrapConfig, parts.bootstrap, templated, io)
  return { machine: latest, outdated }
}

async function syncMetadata<T extends KubeObject>(
  kind: Kind<T>,
  existing: T | undefined,
  templated: Parameters<typeof propagateMetadata>[1],
  io: ReconcileContext,
): Promise<void> {
  if (!existing || isDeleting(existing)) return
  const object = draft(existing)
  propagateMetadata(object, templated)
  await commitChanges(io.client, kind, existing, object, { conditions: [], signal: io.signal })
}

/** Returns the fields that propagate to existing Machines. */
function propagatedFieldsOf({
  deletion,
  taints,
  readinessGates,
  minReadySeconds,
}: NonNullable<LocalControlPlane['spec']['machineTemplate']>['spec']): PropagatedFields {
  return {
    // The default that admission sets on Machines: without it, every reconcile would see a difference.
    deletion: { nodeDeletionTimeoutSeconds: DefaultNodeDeletionTimeoutSeconds, ...deletion },
    ...(taints === undefined ? {} : { taints }),
    ...(readinessGates === undefined ? {} : { readinessGates }),
    ...(minReadySeconds === undefined ? {} : { minReadySeconds }),
  }
}

type PropagatedFields = Pick<Machine['spec'], 'deletion' | 'taints' | 'readinessGates' | 'minReadySeconds'>

/** Default of `spec.deletion.nodeDeletionTimeoutSeconds` of Machines, as in upstream. */
const DefaultNodeDeletionTimeoutSeconds = 10

/** Returns labels and annotations of a new Machine, its infrastructure and its bootstrap config. */
export function machineMetadata({ controlPlane, cluster }: ControlPlaneScope) {
  const { labels, annotations } = templatedMetadata(machineTemplateOf(controlPlane).metadata ?? {})
  return {
    labels: {
      ...labels,
      [ClusterNameLabel]: cluster.metadata.name,
      [MachineControlPlaneLabel]: '',
      [MachineControlPlaneNameLabel]: labelValue(controlPlane.metadata.name),
    },
    annotations,
  }
}

const MaxNameLength = 63

/**
 * Returns the name of a new Machine. A name that is too long is truncated and ends with the random part. Upstream: naming strategy of
 * KubeadmControlPlane.
 */
export function machineName({ metadata, spec }: LocalControlPlane, clusterName: string, random: string): string {
  const values: Record<string, string> = { 'cluster.name': clusterName, 'localControlPlane.name': metadata.name, random }
  const render = (template: string) =>
    template.replace(/\{\{\s*\.([\w.]+)\s*\}\}/g, (placeholder, variable: string) =>
      Object.hasOwn(values, variable) ? values[variable]! : placeholder,
    )
  const name = render(spec.machineNaming?.template ?? '{{ .localControlPlane.name }}-{{ .random }}')
  return name.length <= MaxNameLength ? name : `${name.slice(0, MaxNameLength - random.length - 1)}-${random}`
}

/**
 * Returns the name of the infrastructure and bootstrap config that an interrupted creation left: owned by this control plane, not used by
 * any Machine, and up to date. Deletes all others that are owned by this control plane and not used by any Machine.
 */
async function findLeftover(
  { controlPlane, cluster }: ControlPlaneScope,
  infrastructureKind: Kind<UnknownObject>,
  io: ReconcileContext,
): Promise<string | undefined> {
  const { namespace } = controlPlane.metadata
  const { items } = await io.cache.list(infrastructureKind, {
    namespace: namespace!,
    labelSelector: `${ClusterNameLabel}=${cluster.metadata.name}`,
  })
  let leftover: string | undefined
  for (const infrastructure of items) {
    const key = keyOf(infrastructure)
    if (!isOwnedBy(infrastructure, controlPlane, LocalControlPlane) || isDeleting(infrastructure)) continue
    if (io.cache.peek(Machine, key)) continue
    const bootstrap = io.cache.peek(LocalBootstrapConfig, key)
    // Takes the place of the Machine that was not created. It has no version, so that versions are not compared.
    const machine = { spec: {}, metadata: infrastructure.metadata } as Machine
    const isUsable = outdatedReasons(controlPlane, { machine, infrastructure, bootstrap }, io.clock.now()).length === 0
    if (isUsable && leftover === undefined) leftover = key.name
    else {
      await io.client.delete(infrastructureKind, key, { preconditions: { uid: infrastructure.metadata.uid } })
      if (bootstrap) await io.client.delete(LocalBootstrapConfig, key, { preconditions: { uid: bootstrap.metadata.uid } })
    }
  }
  return leftover
}
