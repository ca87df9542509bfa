import { ClusterConditions, failureDomainsOf, InfraClusterContract } from '@capstan/api'
import { proceed, wait } from '@capstan/controller'
import { isDeleting, type NewCondition, TerminalError } from '@capstan/kube'
import { mirroredCondition } from '../external/mirrored.ts'
import { readTyped } from '../external/observed.ts'
import { awaitsTopology, copyEndpoint, deletedText, missingOfTopology, observeAndAdopt } from './reference.ts'
import type { ClusterPhase, ClusterScope } from './scope.ts'

/**
 * Adopts the infrastructure object. Once it is provisioned, sets `status.initialization.infrastructureProvisioned` of the Cluster,
 * copies the failure domains of the object, and copies its endpoint if the Cluster has no complete endpoint.
 */
export const infrastructure: ClusterPhase = async (scope, io) => {
  const { cluster } = scope
  const { name } = cluster.metadata
  const ref = cluster.spec.infrastructureRef
  if (!isDeleting(cluster) && awaitsTopology(cluster)) {
    scope.infrastructure = { state: 'none' }
    return wait('the topology to be generated')
  }
  const status = (cluster.status ??= {})
  if (!ref) {
    scope.infrastructure = { state: 'none' }
    // As upstream, the infrastructure of a Cluster without a reference is managed externally.
    if (!isDeleting(cluster)) status.initialization = { ...status.initialization, infrastructureProvisioned: true }
    return proceed()
  }
  scope.infrastructure = await observeAndAdopt(scope, io, ref)
  if (scope.infrastructure.state !== 'found') {
    if (isDeleting(cluster)) return proceed()
    if (wasProvisioned(scope)) throw new TerminalError(`${ref.kind} has been deleted after being provisioned`)
    return wait(`${ref.kind} ${ref.name} to exist`)
  }
  const { external } = scope.infrastructure
  if (isDeleting(external.object)) return proceed()
  if (!readTyped(external, InfraClusterContract.provisioned, 'boolean') && !wasProvisioned(scope)) {
    return wait(`${ref.kind} ${ref.name} to be provisioned`)
  }

  copyEndpoint(cluster, external, InfraClusterContract.controlPlaneEndpoint)
  const failureDomains = failureDomainsOf(external.object, external.contract)
  if (failureDomains.length > 0) status.failureDomains = failureDomains
  else delete status.failureDomains
  if (!wasProvisioned(scope)) {
    status.initialization = { ...status.initialization, infrastructureProvisioned: true }
    io.events.event(cluster, 'Normal', 'InfrastructureReady', `Cluster ${name} InfrastructureProvisioned is now True`)
  }
  return proceed()
}

/** Returns the InfrastructureReady condition. Pure. */
export function infrastructureReadyCondition(scope: ClusterScope): NewCondition {
  const { cluster, infrastructure } = scope
  const condition = ClusterConditions.InfrastructureReady
  const kind = cluster.spec.infrastructureRef?.kind
  if (kind === undefined || infrastructure.state === 'none') {
    if (!cluster.spec.topology) return condition.true('Ready')
    return condition.false('ObjectDoesNotExist', missingOfTopology(cluster))
  }
  return mirroredCondition(infrastructure, {
    kind,
    as: condition,
    source: 'Ready',
    milestone: InfraClusterContract.provisioned,
    reached: wasProvisioned(scope),
    deleted: wasProvisioned(scope) ? deletedText(cluster, kind) : undefined,
  })
}

const wasProvisioned = ({ cluster }: ClusterScope): boolean => cluster.status?.initialization?.infrastructureProvisioned === true
