/** Makes the Machines of a control plane, each with its infrastructure and bootstrap config, and keeps them in line without a rollout. */
import {
  clonedKind,
  ClusterNameLabel,
  fromTemplate,
  labelValue,
  latestContract,
  Machine,
  MachineControlPlaneLabel,
  MachineControlPlaneNameLabel,
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
import { LocalControlPlane } from '../kinds/local-control-plane.ts'
import { propagateMetadata, templatedMetadata } from './metadata.ts'
import type { ControlPlaneScope } from './scope.ts'
import { upToDate } from './status.ts'
import { type MachineParts, outdatedReasons } from './up-to-date.ts'

/** The kind that a contract reference names, in the version that its CustomResourceDefinition gives for the contract. */
export function referencedKind(
  { apiGroup, kind }: { apiGroup: string; kind: string },
  io: ReconcileContext,
): Kind<UnknownObject> {
  const plural = pluralOf(kind)
  const crd = io.cache.peek(CustomResourceDefinition, { name: `${plural}.${apiGroup}` })
  if (!crd) throw new Error(`Cannot use ${kind}.${apiGroup}: CustomResourceDefinition ${plural}.${apiGroup} does not exist`)
  return unknownKind({ apiVersion: `${apiGroup}/${latestContract(crd).version}`, kind, plural })
}

/** A Machine with its infrastructure and bootstrap config. */
export async function partsOf(
  machine: Machine,
  io: ReconcileContext,
): Promise<MachineParts & { infrastructureKind: Kind<UnknownObject> }> {
  const { infrastructureRef, bootstrap } = machine.spec
  const { namespace } = machine.metadata
  const infrastructureKind = referencedKind(infrastructureRef, io)
  // Only to have them in the cache: what happens to them reaches the control plane through the Machine.
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
 * the next one finds the first two by their owner and continues.
 */
export async function createMachine(
  scope: ControlPlaneScope,
  template: UnknownObject,
  failureDomain: string | undefined,
  io: ReconcileContext,
): Promise<Machine> {
  const { controlPlane, cluster } = scope
  const { namespace } = controlPlane.metadata
  const infrastructureKind = clonedKind(referencedKind(controlPlane.spec.machineTemplate.spec.infrastructureRef, io))
  await io.watch(infrastructureKind, () => [])

  const leftover = await findLeftover(scope, infrastructureKind, io)
  const name = leftover ?? machineName(controlPlane, cluster.metadata.name, randomSuffix(io.random))
  const key = { namespace: namespace!, name }
  const metadata = machineMetadata(scope)
  const owner = ownerReference(controlPlane, LocalControlPlane)
  if (leftover === undefined) {
    const clone = fromTemplate(template, { ...key, clusterName: cluster.metadata.name, ...metadata, owner })
    // Applied rather than created: what leaves the template then leaves the machine when it is updated in place.
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

/** The Machine to create. Pure. */
export function desiredMachine(
  scope: ControlPlaneScope,
  name: string,
  failureDomain: string | undefined,
  infrastructureKind: Pick<Kind, 'group' | 'kind'>,
): Input<Machine> {
  const { controlPlane, cluster } = scope
  const { version, machineTemplate } = controlPlane.spec
  return {
    metadata: {
      name,
      namespace: controlPlane.metadata.namespace!,
      ...machineMetadata(scope),
      ownerReferences: [controllerReference(controlPlane, LocalControlPlane)],
    },
    spec: {
      clusterName: cluster.metadata.name,
      version,
      ...policyOf(machineTemplate.spec),
      ...(failureDomain === undefined ? {} : { failureDomain }),
      infrastructureRef: { apiGroup: infrastructureKind.group, kind: infrastructureKind.kind, name },
      bootstrap: { configRef: { apiGroup: LocalBootstrapConfig.group, kind: LocalBootstrapConfig.kind, name } },
    },
  }
}

/**
 * Brings an existing Machine and its parts in line with what needs no rollout, and says on it whether it is up to date. Writes only
 * what changed. Returns it as it then is, with why it is to be rolled out.
 */
export async function syncMachine(
  scope: ControlPlaneScope,
  found: Machine,
  io: ReconcileContext,
): Promise<ControlPlaneScope['machines'][number]> {
  const { controlPlane } = scope
  const parts = await partsOf(found, io)
  const outdated = outdatedReasons(controlPlane, parts, io.clock.now())
  if (isDeleting(found)) return { machine: found, outdated }

  const machine = draft(found)
  // Upstream: control plane Machines without a controller are adopted.
  if (!controllerOf(machine)) setControllerReference(machine, controlPlane, LocalControlPlane)
  const templated = controlPlane.spec.machineTemplate.metadata ?? {}
  propagateMetadata(machine, templated)
  const { deletion: _, taints: _taints, readinessGates: _gates, ...rest } = machine.spec
  machine.spec = { ...rest, ...draft(policyOf(controlPlane.spec.machineTemplate.spec)) }
  machine.status = {
    ...machine.status,
    conditions: setConditions(machine.status?.conditions, [upToDate(found, outdated)], {
      now: io.clock.now(),
      generation: found.metadata.generation,
    }),
  }
  const latest = await commitChanges(io.client, Machine, found, machine, { conditions: ['UpToDate'], signal: io.signal })
  await syncMetadata(parts.infrastructureKind, parts.infrastructure, templated, io)
  await syncMetadata(LocalBootstrapConfig, parts.bootstrap, templated, io)
  return { machine: latest, outdated }
}

async function syncMetadata<T extends KubeObject>(
  kind: Kind<T>,
  found: T | undefined,
  templated: Parameters<typeof propagateMetadata>[1],
  io: ReconcileContext,
): Promise<void> {
  if (!found || isDeleting(found)) return
  const object = draft(found)
  propagateMetadata(object, templated)
  await commitChanges(io.client, kind, found, object, { conditions: [], signal: io.signal })
}

/** Fields that reach existing Machines as well. */
function policyOf({ deletion, taints, readinessGates }: LocalControlPlane['spec']['machineTemplate']['spec']): Policy {
  return {
    // Admission of Machines would fill in the same: left out here, it would look different in every pass.
    deletion: { nodeDeletionTimeoutSeconds: DefaultNodeDeletionTimeout, ...deletion },
    ...(taints === undefined ? {} : { taints }),
    ...(readinessGates === undefined ? {} : { readinessGates }),
  }
}

type Policy = Pick<Machine['spec'], 'deletion' | 'taints' | 'readinessGates'>

/** Seconds. Upstream: default of Machine spec.deletion.nodeDeletionTimeoutSeconds. */
const DefaultNodeDeletionTimeout = 10

/** Labels and annotations of a new Machine and its parts. */
export function machineMetadata({ controlPlane, cluster }: ControlPlaneScope) {
  const { labels, annotations } = templatedMetadata(controlPlane.spec.machineTemplate.metadata ?? {})
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

const LongestName = 63

/** Upstream: naming strategy of KubeadmControlPlane; a name that is too long loses the end of what comes before the random part. */
export function machineName({ metadata, spec }: LocalControlPlane, clusterName: string, random: string): string {
  const values: Record<string, string> = { 'cluster.name': clusterName, 'localControlPlane.name': metadata.name, random }
  const render = (template: string) =>
    template.replace(/\{\{\s*\.([\w.]+)\s*\}\}/g, (all, variable: string) => values[variable] ?? all)
  const name = render(spec.machineNaming?.template ?? '{{ .localControlPlane.name }}-{{ .random }}')
  return name.length <= LongestName ? name : `${name.slice(0, LongestName - random.length - 1)}-${random}`
}

/**
 * The name of what an interrupted creation has left: owned by this control plane, not used by any Machine, and as it would be made
 * now. What is no longer as it should be is deleted.
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
    const machine = { spec: {}, metadata: infrastructure.metadata } as Machine
    const usable = outdatedReasons(controlPlane, { machine, infrastructure, bootstrap }, io.clock.now()).length === 0
    if (usable && leftover === undefined) leftover = key.name
    else {
      await io.client.delete(infrastructureKind, key, { preconditions: { uid: infrastructure.metadata.uid } })
      if (bootstrap) await io.client.delete(LocalBootstrapConfig, key, { preconditions: { uid: bootstrap.metadata.uid } })
    }
  }
  return leftover
}
