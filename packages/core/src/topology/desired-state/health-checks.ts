/**
 * The MachineHealthChecks of a topology: at most one for the control plane and one for each MachineDeployment. Upstream:
 * exp/topology/scope/blueprint.go and computeMachineHealthCheck in exp/topology/desiredstate, v1.14.
 */
import type {
  ControlPlaneClass,
  ControlPlaneTopology,
  HealthCheckRemediation,
  HealthChecks,
  MachineDeploymentClass,
  MachineDeploymentTopology,
} from '@capstan/api'
import {
  Cluster,
  ClusterTopologyMachineDeploymentNameLabel,
  ClusterTopologyOwnedLabel,
  MachineControlPlaneLabel,
  MachineHealthCheck,
} from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import {
  draft,
  type Input,
  keyOf,
  keyText,
  type Kind,
  type KubeObject,
  orAbsent,
  ownerReference,
  typeMeta,
  withErrorContext,
} from '@capstan/kube'
import { applyToExisting } from '../../apply-intent.ts'
import type { Applier } from '../apply.ts'
import { difference, dryRunError, TopologyManager } from '../differences.ts'
import { existingOwnerOr } from './desired-object.ts'

export type DesiredHealthCheck = Input<MachineHealthCheck> & { metadata: { name: string; namespace: string } }

/** The parts of a health check that topologies and classes share. */
interface HealthCheckParts {
  readonly checks?: HealthChecks | undefined
  readonly remediation?: (HealthCheckRemediation & { readonly maxInFlight?: number | string }) | undefined
}

/** Reports whether checks or remediation are configured; `enabled` alone does not count. */
export const isDefined = (parts: HealthCheckParts | undefined): parts is HealthCheckParts =>
  parts?.checks !== undefined || parts?.remediation !== undefined

/**
 * Returns the health check of the topology, or else that of the class, without merging them. `undefined` when neither is defined, or the
 * topology disables health checks.
 */
function effectiveHealthCheck(
  checkOfTopology: (HealthCheckParts & { readonly enabled?: boolean }) | undefined,
  checkOfClass: HealthCheckParts | undefined,
): HealthCheckParts | undefined {
  if (checkOfTopology?.enabled === false) return undefined
  return [checkOfTopology, checkOfClass].find(isDefined)
}

/**
 * Returns the MachineHealthCheck of a control plane, with the name of the control plane object; `undefined` when none is defined, the
 * topology disables health checks, or the control plane does not run on Machines.
 */
export function controlPlaneHealthCheck(
  cluster: Cluster,
  { class: controlPlaneClass, topology }: { readonly class: ControlPlaneClass; readonly topology: ControlPlaneTopology },
  name: string,
  current: MachineHealthCheck | undefined,
): DesiredHealthCheck | undefined {
  if (!controlPlaneClass.machineInfrastructure) return undefined
  const parts = effectiveHealthCheck(topology.healthCheck, controlPlaneClass.healthCheck)
  return parts && healthCheck(cluster, name, { [MachineControlPlaneLabel]: '' }, parts, current)
}

/**
 * Returns the MachineHealthCheck of a MachineDeployment, with the name of the MachineDeployment; `undefined` when none is defined, or the
 * topology disables health checks.
 */
export function machineDeploymentHealthCheck(
  cluster: Cluster,
  topology: MachineDeploymentTopology,
  workerClass: MachineDeploymentClass,
  name: string,
  current: MachineHealthCheck | undefined,
): DesiredHealthCheck | undefined {
  const parts = effectiveHealthCheck(topology.healthCheck, workerClass.healthCheck)
  return parts && healthCheck(cluster, name, { [ClusterTopologyMachineDeploymentNameLabel]: topology.name }, parts, current)
}

function healthCheck(
  cluster: Cluster,
  name: string,
  labels: Record<string, string>,
  { checks, remediation: { templateRef, triggerIf } = {} }: HealthCheckParts,
  current: MachineHealthCheck | undefined,
): DesiredHealthCheck {
  const remediation = { ...(templateRef ? { templateRef } : {}), ...(triggerIf ? { triggerIf } : {}) }
  const object = draft({
    ...typeMeta(MachineHealthCheck),
    metadata: {
      name,
      namespace: cluster.metadata.namespace!,
      labels: { [ClusterTopologyOwnedLabel]: '' },
      ownerReferences: [existingOwnerOr(cluster, current, ownerReference(cluster, Cluster))],
    },
    spec: {
      clusterName: cluster.metadata.name,
      selector: { matchLabels: { [ClusterTopologyOwnedLabel]: '', ...labels } },
      ...(checks ? { checks } : {}),
      ...(Object.keys(remediation).length > 0 ? { remediation } : {}),
    },
  }) as DesiredHealthCheck
  // Defaults belong to the desired state: otherwise it would differ from the admitted object.
  const withDefaults = object as unknown as MachineHealthCheck
  MachineHealthCheck.default?.(withDefaults, { operation: 'CREATE', oldObject: undefined, dryRun: false })
  return object
}

/** Returns the MachineHealthCheck of a control plane object or MachineDeployment, if the topology created one. */
export function observeHealthCheck({ metadata }: KubeObject, { cache }: ReconcileContext): MachineHealthCheck | undefined {
  const existing = cache.peek(MachineHealthCheck, { namespace: metadata.namespace!, name: metadata.name })
  return existing?.metadata.labels?.[ClusterTopologyOwnedLabel] === undefined ? undefined : existing
}

/** Creates, updates or deletes a MachineHealthCheck. It is independent of versions, so it need not wait for an upgrade. */
export async function applyHealthCheck(
  { context, applied }: Applier,
  desired: DesiredHealthCheck | undefined,
  current: MachineHealthCheck | undefined,
): Promise<void> {
  const { client, events, signal } = context
  const record = (object: KubeObject, reason: string, action: string) =>
    events.event(object, 'Normal', reason, `${action} MachineHealthCheck ${JSON.stringify(keyText(keyOf(object)))}`)
  if (!desired) {
    if (!current) return
    const { uid } = current.metadata
    await withErrorContext(`failed to delete MachineHealthCheck ${keyText(keyOf(current))}`, () =>
      orAbsent(client.delete(MachineHealthCheck, keyOf(current), { preconditions: { uid }, signal })),
    )
    applied.forget(uid)
    record(current, 'TopologyDelete', 'Deleted')
    return
  }
  const intent = desired as unknown as Parameters<typeof difference>[0]
  if (current && (difference(intent, current) === 'none' || applied.isCurrent(intent, current))) return
  const kind: Kind<MachineHealthCheck> = MachineHealthCheck
  const failure = current ? dryRunError(kind.kind, current) : `failed to create MachineHealthCheck ${keyText(desired.metadata)}`
  const written = await withErrorContext(failure, () =>
    current
      ? applyToExisting(context, kind, current, desired, TopologyManager)
      : client.apply(kind, desired, { fieldManager: TopologyManager, force: true, signal }),
  )
  applied.record(intent, written)
  if (!current) record(written, 'TopologyCreate', 'Created')
  else if (written.metadata.resourceVersion !== current.metadata.resourceVersion) record(written, 'TopologyUpdate', 'Updated')
}
