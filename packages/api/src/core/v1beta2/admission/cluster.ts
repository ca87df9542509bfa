/**
 * Defaulting and validation of Clusters, as far as no other object is needed. The core provider validates Clusters against their
 * ClusterClass. Upstream: core/webhooks/admission/cluster.go, v1.14.
 */
import type { AdmissionContext, FieldError, KubeObject } from '@capstan/kube'
import { forbidden, invalid, labelValueProblems, messageOf, parseGoInteger, readIPv4, readIPv6 } from '@capstan/kube'
import { withVersionPrefix } from '../../../versions.ts'
import {
  AutoscalerMaxSizeAnnotation,
  AutoscalerMinSizeAnnotation,
  ClusterTopologyUpgradeConcurrencyAnnotation,
} from '../../well-known.ts'
import type { ClusterSpec, ClusterTopology } from '../cluster.ts'
import { metadataErrors, rolloutStrategyErrors, taintErrors, versionErrors } from './field-checks.ts'

type ClusterLike = KubeObject & { spec: ClusterSpec }

export function defaultCluster({ spec }: ClusterLike): void {
  if (spec.topology) spec.topology.version = withVersionPrefix(spec.topology.version)
}

export function clusterErrors(cluster: ClusterLike, { oldObject: old }: AdmissionContext<ClusterLike>): FieldError[] {
  const { metadata, spec } = cluster
  const { infrastructureRef, controlPlaneRef, topology, clusterNetwork } = spec
  return [
    // The name becomes a label value.
    ...labelValueProblems(metadata.name).map((problem) =>
      invalid('metadata.name', metadata.name, `must be a valid label value ${problem}`),
    ),
    ...(old?.spec.infrastructureRef && !infrastructureRef ? [forbidden('spec.infrastructureRef', 'cannot be removed')] : []),
    ...(infrastructureRef || controlPlaneRef || topology
      ? []
      : [forbidden('spec', 'one of spec.controlPlaneRef, spec.infrastructureRef or spec.topology must be set')]),
    ...(old?.spec.controlPlaneRef && !controlPlaneRef ? [forbidden('spec.controlPlaneRef', 'cannot be removed')] : []),
    ...cidrErrors('spec.clusterNetwork.pods.cidrBlocks', clusterNetwork?.pods?.cidrBlocks),
    ...cidrErrors('spec.clusterNetwork.services.cidrBlocks', clusterNetwork?.services?.cidrBlocks),
    ...(topology ? topologyErrors(cluster, topology) : []),
    ...(old?.spec.topology && !topology ? [forbidden('spec.topology', 'cannot be removed from an existing Cluster')] : []),
  ]
}

const path = 'spec.topology'

function topologyErrors({ metadata }: ClusterLike, topology: ClusterTopology): FieldError[] {
  const { controlPlane, workers, version } = topology
  const deployments = (workers?.machineDeployments ?? []).map((worker) => ({
    worker,
    workerPath: `${path}.workers.machineDeployments[${worker.name}]`,
  }))
  const pools = (workers?.machinePools ?? []).map((worker) => ({
    worker,
    workerPath: `${path}.workers.machinePools[${worker.name}]`,
  }))
  const workersWithPath = [...deployments, ...pools]
  return [
    ...versionErrors(`${path}.version`, version, 'version must be a valid semantic version'),
    ...metadataErrors(`${path}.controlPlane.metadata`, controlPlane?.metadata),
    ...workersWithPath.flatMap(({ worker, workerPath }) => metadataErrors(`${workerPath}.metadata`, worker.metadata)),
    ...deployments.flatMap(({ worker, workerPath }) =>
      rolloutStrategyErrors(`${workerPath}.rollout.strategy`, worker.rollout?.strategy),
    ),
    ...taintErrors(`${path}.controlPlane.taints`, controlPlane?.taints),
    ...workersWithPath.flatMap(({ worker, workerPath }) => taintErrors(`${workerPath}.taints`, worker.taints)),
    ...concurrencyErrors(metadata.annotations?.[ClusterTopologyUpgradeConcurrencyAnnotation]),
    ...deployments.flatMap(({ worker, workerPath }) =>
      worker.replicas !== undefined && hasAutoscalerAnnotation(worker.metadata?.annotations)
        ? [
            invalid(
              `${workerPath}.replicas`,
              worker.replicas,
              `cannot be set for cluster ${JSON.stringify(metadata.name)} in namespace ${JSON.stringify(metadata.namespace)} if the same MachineDeploymentTopology has autoscaler annotations`,
            ),
          ]
        : [],
    ),
  ]
}

const hasAutoscalerAnnotation = (annotations: { [key: string]: string } | undefined): boolean =>
  annotations?.[AutoscalerMinSizeAnnotation] !== undefined || annotations?.[AutoscalerMaxSizeAnnotation] !== undefined

function concurrencyErrors(text: string | undefined): FieldError[] {
  if (text === undefined) return []
  const field = `metadata.annotations.${ClusterTopologyUpgradeConcurrencyAnnotation}`
  try {
    return parseGoInteger(text, 'Atoi') < 1 ? [invalid(field, text, 'value cannot be less than 1')] : []
  } catch (err) {
    return [invalid(field, text, `could not parse the value of the annotation: ${messageOf(err)}`)]
  }
}

const cidrErrors = (field: string, blocks: readonly string[] | undefined): FieldError[] =>
  (blocks ?? []).flatMap((block, index) =>
    isCIDR(block) ? [] : [invalid(`${field}[${index}]`, block, `invalid CIDR address: ${block}`)],
  )

function isCIDR(text: string): boolean {
  const match = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text)
  if (!match) return false
  const [, address, length] = match as unknown as [string, string, string]
  return readIPv4(address) === undefined ? readIPv6(address) !== undefined && Number(length) <= 128 : Number(length) <= 32
}
