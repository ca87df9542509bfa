/**
 * Explains how core reads a provider's object: the selected contract version with the reason, each field in both contract versions, and the
 * result.
 */
import {
  BootstrapConfigContract,
  type ContractField,
  type ContractVersion,
  ContractVersions,
  ControlPlaneContract,
  InfraClusterContract,
  InfraMachineContract,
  InfraMachinePoolContract,
  isPoolProvisioned,
  latestContract,
  readField,
  readPath,
} from '@capstan/api/contract'
import { equal, type KubeObject, messageOf, type UnknownObject } from '@capstan/kube'
import { claimedVersions, type ContractName, labelOf, type ProviderKind } from './manifests.ts'

/** A field of a contract, and the fields of the object's owner to which core copies the value. */
interface Reading {
  readonly field: ContractField<unknown>
  /** Path of the copy by the kind of the owner. Absent if the value is not compared with a copy. */
  readonly to?: Readonly<Record<string, string>>
  /** Whether core waits until this field is true before it copies other fields, except those with `isEarly`. */
  readonly isMilestone?: true
  /** Whether core copies the field even before the milestone is true. */
  readonly isEarly?: true
  /** Whether core changes the format of the value, so that the copy cannot be compared with it. */
  readonly isConverted?: true
}

/** Returns failureReason and failureMessage, with the copies in owners of these kinds. */
function failures(
  contract: { readonly failureReason: ContractField<string>; readonly failureMessage: ContractField<string> },
  ...kinds: string[]
) {
  const to = (path: string) => Object.fromEntries(kinds.map((kind) => [kind, path]))
  return {
    failureReason: { field: contract.failureReason, to: to('status.deprecated.v1beta1.failureReason'), isEarly: true },
    failureMessage: { field: contract.failureMessage, to: to('status.deprecated.v1beta1.failureMessage'), isEarly: true },
  } as const satisfies Readonly<Record<string, Reading>>
}

/**
 * The explained fields, by contract: the fields that core reads, except conditions, fields that only the topology controller reads, and
 * `unavailableReplicas` of contract v1beta1. Upstream: core/reconcilers of Cluster, Machine and MachinePool, v1.14.
 */
const readings: Readonly<Record<ContractName, Readonly<Record<string, Reading>>>> = {
  InfraCluster: {
    provisioned: {
      field: InfraClusterContract.provisioned,
      to: { Cluster: 'status.initialization.infrastructureProvisioned' },
      isMilestone: true,
    },
    controlPlaneEndpoint: { field: InfraClusterContract.controlPlaneEndpoint, to: { Cluster: 'spec.controlPlaneEndpoint' } },
    failureDomains: { field: InfraClusterContract.failureDomains, to: { Cluster: 'status.failureDomains' }, isConverted: true },
    ...failures(InfraClusterContract, 'Cluster'),
  },
  InfraMachine: {
    provisioned: {
      field: InfraMachineContract.provisioned,
      to: { Machine: 'status.initialization.infrastructureProvisioned' },
      isMilestone: true,
    },
    providerID: { field: InfraMachineContract.providerID, to: { Machine: 'spec.providerID' } },
    addresses: { field: InfraMachineContract.addresses, to: { Machine: 'status.addresses' } },
    specFailureDomain: { field: InfraMachineContract.specFailureDomain, to: { Machine: 'spec.failureDomain' } },
    failureDomain: { field: InfraMachineContract.failureDomain, to: { Machine: 'status.failureDomain' } },
    interruptible: { field: InfraMachineContract.interruptible },
    ...failures(InfraMachineContract, 'Machine'),
  },
  InfraMachinePool: {
    provisioned: {
      field: InfraMachinePoolContract.provisioned,
      to: { MachinePool: 'status.initialization.infrastructureProvisioned' },
      isMilestone: true,
    },
    ready: { field: InfraMachinePoolContract.ready },
    providerIDList: { field: InfraMachinePoolContract.providerIDList, to: { MachinePool: 'spec.providerIDList' } },
    replicas: { field: InfraMachinePoolContract.replicas, to: { MachinePool: 'status.replicas' } },
    infrastructureMachineKind: { field: InfraMachinePoolContract.infrastructureMachineKind },
    ...failures(InfraMachinePoolContract, 'MachinePool'),
  },
  BootstrapConfig: {
    dataSecretCreated: {
      field: BootstrapConfigContract.dataSecretCreated,
      to: {
        Machine: 'status.initialization.bootstrapDataSecretCreated',
        MachinePool: 'status.initialization.bootstrapDataSecretCreated',
      },
      isMilestone: true,
    },
    dataSecretName: {
      field: BootstrapConfigContract.dataSecretName,
      to: { Machine: 'spec.bootstrap.dataSecretName', MachinePool: 'spec.template.spec.bootstrap.dataSecretName' },
    },
    ...failures(BootstrapConfigContract, 'Machine', 'MachinePool'),
  },
  ControlPlane: {
    initialized: { field: ControlPlaneContract.initialized, to: { Cluster: 'status.initialization.controlPlaneInitialized' } },
    controlPlaneEndpoint: { field: ControlPlaneContract.controlPlaneEndpoint, to: { Cluster: 'spec.controlPlaneEndpoint' } },
    specReplicas: { field: ControlPlaneContract.specReplicas, to: { Cluster: 'status.controlPlane.desiredReplicas' } },
    replicas: { field: ControlPlaneContract.replicas, to: { Cluster: 'status.controlPlane.replicas' } },
    readyReplicas: { field: ControlPlaneContract.readyReplicas, to: { Cluster: 'status.controlPlane.readyReplicas' } },
    availableReplicas: {
      field: ControlPlaneContract.availableReplicas,
      to: { Cluster: 'status.controlPlane.availableReplicas' },
    },
    upToDateReplicas: { field: ControlPlaneContract.upToDateReplicas, to: { Cluster: 'status.controlPlane.upToDateReplicas' } },
    version: { field: ControlPlaneContract.version },
    statusVersions: { field: ControlPlaneContract.statusVersions },
    statusVersion: { field: ControlPlaneContract.statusVersion },
    externalManagedControlPlane: { field: ControlPlaneContract.externalManagedControlPlane },
    ...failures(ControlPlaneContract, 'Cluster'),
  },
}

/** The value at the path of one contract version. */
export interface FieldValue {
  readonly path: string
  /** Absent if there is no value. */
  readonly value?: unknown
  /** Error message if a parent of the path is not an object. */
  readonly error?: string
}

/** How core handles one field of a contract. */
export interface XrayRow {
  readonly name: string
  readonly doc: string
  readonly mandatory: boolean
  readonly versions: Readonly<Record<ContractVersion, FieldValue>>
  /** The effect of the value in the selected version. */
  readonly conclusion: string
  /**
   * Whether core cannot read the field, waits for it, or has not copied it yet. True if reading it fails; if it is mandatory, and has no value
   * or no contract version is chosen; and if core copies it, but the object has no owner or the owner has no equal value.
   */
  readonly isPending: boolean
}

/** How core reads one object of a provider. */
export interface Xray {
  /** Kind and key of the object: `LocalMachine default/a`. */
  readonly object: string
  readonly contract: ContractName
  /** The contract version that core chooses. Absent if the labels name none. */
  readonly contractVersion?: ContractVersion
  /** The API version in which core reads the object. */
  readonly apiVersion?: string
  /** Reason for the choice of this version; without a version, the error message of core. */
  readonly reason: string
  /** Kind and key of the owner. */
  readonly owner?: string
  readonly rows: readonly XrayRow[]
}

/** Kinds of the owners to which core copies fields of an object, by the contract of the object. */
export const OwnerKinds: Readonly<Record<ContractName, readonly string[]>> = {
  InfraCluster: ['Cluster'],
  InfraMachine: ['Machine'],
  InfraMachinePool: ['MachinePool'],
  BootstrapConfig: ['Machine', 'MachinePool'],
  ControlPlane: ['Cluster'],
}

export interface XrayInput {
  readonly provider: ProviderKind
  /** The object in each served API version, by version. */
  readonly objects: ReadonlyMap<string, UnknownObject>
  readonly owner: KubeObject | undefined
}

/** Explains how core reads the object. */
export function xray({ provider, objects, owner }: XrayInput): Xray {
  const { crd, contract } = provider
  const choice = chooseVersion(provider)
  const firstObject = objects.values().next().value!
  const inVersion = (version: ContractVersion): UnknownObject =>
    (version === choice.contractVersion ? objects.get(choice.version!) : undefined) ??
    claimedVersions(provider, version).flatMap((name) => objects.get(name) ?? [])[0] ??
    firstObject
  const readIn = (field: ContractField<unknown>, version: ContractVersion): FieldValue => {
    const path = field.paths[version]
    try {
      const value = readField(inVersion(version), field, version)
      return value === undefined ? { path } : { path, value }
    } catch (err) {
      return { path, error: messageOf(err) }
    }
  }
  const readingsByName = readings[contract]
  const milestone = Object.values(readingsByName).find(({ isMilestone }) => isMilestone)
  const isMilestoneReached = milestone === undefined || isReached(contract, inVersion, milestone, choice.contractVersion)
  const rows = Object.entries(readingsByName).map(([name, reading]): XrayRow => {
    const versions = Object.fromEntries(ContractVersions.map((version) => [version, readIn(reading.field, version)])) as Record<
      ContractVersion,
      FieldValue
    >
    return {
      name,
      doc: reading.field.doc,
      mandatory: reading.field.mandatory,
      versions,
      ...conclude(reading, choice.contractVersion && versions[choice.contractVersion], { owner, isMilestoneReached }),
    }
  })
  return {
    object: `${crd.spec.names.kind} ${firstObject.metadata.namespace}/${firstObject.metadata.name}`,
    contract,
    ...(choice.contractVersion
      ? { contractVersion: choice.contractVersion, apiVersion: `${crd.spec.group}/${choice.version}` }
      : {}),
    reason: choice.reason,
    ...(owner ? { owner: `${owner.kind} ${owner.metadata.namespace}/${owner.metadata.name}` } : {}),
    rows,
  }
}

/** Whether the milestone is true in the selected contract version. */
function isReached(
  contract: ContractName,
  inVersion: (version: ContractVersion) => UnknownObject,
  { field }: Reading,
  version: ContractVersion | undefined,
): boolean {
  if (version === undefined) return false
  try {
    const object = inVersion(version)
    return contract === 'InfraMachinePool' ? isPoolProvisioned(object, version) : readField(object, field, version) === true
  } catch {
    return false
  }
}

interface Choice {
  readonly contractVersion?: ContractVersion
  readonly version?: string
  readonly reason: string
}

function chooseVersion(provider: ProviderKind): Choice {
  const labels = ContractVersions.map(
    (version) => `${labelOf(version)}=${claimedVersions(provider, version).join('_') || '(none)'}`,
  )
  try {
    const { contract, version } = latestContract(provider.crd)
    const isServed = provider.crd.spec.versions.some(({ name, served }) => name === version && served)
    return {
      contractVersion: contract,
      version,
      reason:
        `labels of the CustomResourceDefinition: ${labels.join(', ')}; ${contract} is the newest contract that has a label, ` +
        `${version} the greatest version of its label${isServed ? '' : ', which is not served: core cannot read the object'}`,
    }
  } catch (err) {
    return { reason: messageOf(err) }
  }
}

/** Returns how core handles the value of the selected contract version, and whether the field is pending (see `XrayRow`). */
function conclude(
  { field, to, isMilestone, isEarly, isConverted }: Reading,
  selected: FieldValue | undefined,
  { owner, isMilestoneReached }: { readonly owner: KubeObject | undefined; readonly isMilestoneReached: boolean },
): Pick<XrayRow, 'conclusion' | 'isPending'> {
  if (selected === undefined) return { conclusion: 'core reads nothing: no contract version', isPending: field.mandatory }
  if (selected.error !== undefined) return { conclusion: `core fails: ${selected.error}`, isPending: true }
  if (to === undefined)
    return { conclusion: selected.value === undefined ? 'absent' : 'read where it is needed', isPending: false }
  if (owner === undefined) {
    const targets = Object.entries(to).map(([kind, path]) => `${kind}.${path}`)
    return { conclusion: `no owner: not copied to ${targets.join(' or ')}`, isPending: true }
  }
  const path = to[owner.kind]
  if (path === undefined) return { conclusion: `not copied: the owner is a ${owner.kind}`, isPending: false }
  const target = `${owner.kind}.${path}`
  const copy = readPath(owner, path)
  if (selected.value === undefined) {
    const missing = field.mandatory ? `core waits for ${selected.path}` : 'nothing to copy'
    return {
      conclusion: copy === undefined ? missing : `${target} is set, from another source or an earlier value`,
      isPending: field.mandatory,
    }
  }
  if (equal(copy, selected.value) || (copy !== undefined && isConverted)) {
    return { conclusion: `copied to ${target}`, isPending: false }
  }
  if (!isMilestoneReached && !isMilestone && !isEarly)
    return { conclusion: `not copied to ${target} before initialization is completed`, isPending: true }
  if (selected.value === false) return { conclusion: `core waits until ${selected.path} is true`, isPending: true }
  return { conclusion: `${target} is ${copy === undefined ? 'absent' : JSON.stringify(copy)}: not copied`, isPending: true }
}
