/** Contract of a control plane. Upstream: internal/contract/controlplane.go, v1.14. */
import { durationText, seconds } from '@capstan/kube'
import type { ConditionGate } from '../core/v1beta2/shared/condition-gates.ts'
import type { MachineTaint } from '../core/v1beta2/shared/machine-taints.ts'
import type { ContractVersionedObjectReference } from '../core/v1beta2/shared/references.ts'
import type { ReplicasOfVersion } from '../core/v1beta2/shared/versions.ts'
import { compareWithBuild, isUpgrade } from '../versions.ts'
import type { ContractEndpoint, ContractMetadata } from './common.ts'
import { failureFields, templateFields } from './common.ts'
import type { ContractField, ContractVersion } from './field.ts'
import { field, readField, writeField } from './field.ts'

/** Reference to the template of control plane machines in contract v1beta1. */
export interface V1Beta1ObjectReference {
  apiVersion: string
  kind: string
  name: string
  namespace: string
}

/** A timeout in the format of the contract version: seconds in v1beta2, a Go duration such as `1m30s` in v1beta1. See `writeSeconds`. */
type Timeout = number | string

const timeout = (name: string, step: string) =>
  field<Timeout>(
    { v1beta1: `spec.machineTemplate.${name}`, v1beta2: `spec.machineTemplate.spec.deletion.${name}Seconds` },
    `Timeout of ${step} when a control plane Machine is deleted; 0 means without limit.`,
  )

export const ControlPlaneContract = {
  initialized: field<boolean>(
    { v1beta1: 'status.initialized', v1beta2: 'status.initialization.controlPlaneInitialized' },
    'True once the API server accepted requests for the first time. Core never sets status.initialization.controlPlaneInitialized of the Cluster back to false.',
    { mandatory: true },
  ),
  controlPlaneEndpoint: field<ContractEndpoint>(
    'spec.controlPlaneEndpoint',
    'Host and port of the API server, for control planes that provide them.',
  ),
  specReplicas: field<number>('spec.replicas', 'Desired number of Machines. Absent for control planes without Machines.'),
  replicas: field<number>('status.replicas', 'Number of Machines.'),
  readyReplicas: field<number>('status.readyReplicas', 'Number of Ready Machines.'),
  availableReplicas: field<number>(
    'status.availableReplicas',
    'Number of Available Machines. Contract v1beta1 has unavailableReplicas instead, see availableReplicasOf.',
  ),
  unavailableReplicas: field<number>('status.unavailableReplicas', 'Contract v1beta1 only: number of unavailable Machines.'),
  upToDateReplicas: field<number>(
    { v1beta1: 'status.updatedReplicas', v1beta2: 'status.upToDateReplicas' },
    'Number of Machines that are up to date with the spec.',
  ),
  selector: field<string>('status.selector', 'Label selector of the Machines as text, for the scale subresource.'),
  version: field<string>('spec.version', 'Kubernetes version to run. Mandatory when used in a ClusterClass.'),
  statusVersion: field<string>('status.version', 'Lowest Kubernetes version of the Machines; `status.versions` is preferred.'),
  statusVersions: field<ReplicasOfVersion[]>(
    'status.versions',
    'Kubernetes versions in use, from old to new, with the number of replicas of each.',
  ),
  machineTemplateMetadata: field<ContractMetadata>(
    'spec.machineTemplate.metadata',
    'Labels and annotations of the control plane Machines.',
  ),
  machineInfrastructureRef: field<ContractVersionedObjectReference | V1Beta1ObjectReference>(
    { v1beta1: 'spec.machineTemplate.infrastructureRef', v1beta2: 'spec.machineTemplate.spec.infrastructureRef' },
    'Template of the infrastructure of control plane Machines. Mandatory when the ClusterClass has machineInfrastructure.',
  ),
  nodeDrainTimeout: timeout('nodeDrainTimeout', 'draining the Node'),
  nodeVolumeDetachTimeout: timeout('nodeVolumeDetachTimeout', 'detaching volumes'),
  nodeDeletionTimeout: timeout('nodeDeletionTimeout', 'deleting the Node'),
  readinessGates: field<ConditionGate[]>(
    { v1beta1: 'spec.machineTemplate.readinessGates', v1beta2: 'spec.machineTemplate.spec.readinessGates' },
    'Additional conditions that must be met for control plane Machines to be Ready.',
  ),
  taints: field<MachineTaint[]>(
    { v1beta1: 'spec.machineTemplate.taints', v1beta2: 'spec.machineTemplate.spec.taints' },
    'Taints of the Nodes of control plane Machines.',
  ),
  rolloutAfter: field<string>('spec.rollout.after', 'Machines created before this time are replaced once the time is reached.'),
  externalManagedControlPlane: field<boolean>(
    'status.externalManagedControlPlane',
    'True when the control plane does not run on Machines. Core then deletes Nodes of Machines even if no control plane Machine remains.',
  ),
  ...failureFields,
}

export const ControlPlaneTemplateContract = {
  ...templateFields,
  machineTemplateMetadata: field<ContractMetadata>(
    'spec.template.spec.machineTemplate.metadata',
    'Labels and annotations of the control plane Machines.',
  ),
}

/** Whether the control plane is being created, which means that it reports no version yet. */
export const isProvisioning = (controlPlane: object, contract: ContractVersion): boolean =>
  !currentStatusVersion(controlPlane, contract)

/** Returns the lowest version that the control plane runs, or `undefined`. @throws TypeError when `status.versions` is invalid */
export function currentStatusVersion(controlPlane: object, contract: ContractVersion): string | undefined {
  return (
    statusVersionsOf(controlPlane, contract)?.[0]?.version ??
    readField(controlPlane, ControlPlaneContract.statusVersion, contract)
  )
}

/**
 * Whether at least one replica of the control plane must be upgraded to the version in the spec, because the replica runs an older version,
 * lower build tags, or build tags that have no order relative to those in the spec.
 *
 * @throws TypeError when the spec has no version, a version cannot be parsed, or `status.versions` is invalid
 */
export function isUpgrading(controlPlane: object, contract: ContractVersion): boolean {
  const desired = readField(controlPlane, ControlPlaneContract.version, contract)
  if (!desired) throw new TypeError('failed to get control plane spec version')
  const versions = statusVersionsOf(controlPlane, contract) ?? []
  if (versions.length > 0) return versions.some(({ version }) => isUpgrade(version, desired))
  const current = readField(controlPlane, ControlPlaneContract.statusVersion, contract)
  return current ? isUpgrade(current, desired) : false
}

/**
 * Returns `status.versions`.
 * @throws TypeError when one of several versions cannot be parsed, the versions are not in ascending order, or a count is negative
 */
export function statusVersionsOf(controlPlane: object, contract: ContractVersion): ReplicasOfVersion[] | undefined {
  const versions = readField(controlPlane, ControlPlaneContract.statusVersions, contract)
  versions?.forEach(({ version, replicas }, index) => {
    const previous = versions[index - 1]?.version
    if (previous !== undefined && compareWithBuild(previous, version) === 1) {
      throw new TypeError(`version "${previous}" and "${version}" are in the wrong order`)
    }
    if (replicas !== undefined && replicas < 0) throw new TypeError(`.status.versions[${index}].replicas must not be negative`)
  })
  return versions
}

/**
 * Returns the number of available replicas. In contract v1beta1, the number is `spec.replicas` minus the unavailable replicas, at least 0;
 * `undefined` if one of these fields is absent.
 */
export function availableReplicasOf(controlPlane: object, contract: ContractVersion): number | undefined {
  if (contract === 'v1beta2') return readField(controlPlane, ControlPlaneContract.availableReplicas, contract)
  const desired = readField(controlPlane, ControlPlaneContract.specReplicas, contract)
  const unavailable = readField(controlPlane, ControlPlaneContract.unavailableReplicas, contract)
  return desired === undefined || unavailable === undefined ? undefined : Math.max(0, desired - unavailable)
}

/**
 * Writes a timeout, given in seconds, in the format of the contract version. For v1beta1, writes a duration exactly as Go does, so that a
 * webhook written in Go keeps the text unchanged.
 */
export function writeSeconds(draft: object, field: ContractField<Timeout>, contract: ContractVersion, value: number): void {
  writeField(draft, field, contract, contract === 'v1beta2' ? value : durationText(seconds(value)))
}
