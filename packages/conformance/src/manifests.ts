/** Finds the CustomResourceDefinitions of a provider that implement contracts, and the contract versions that they claim. */
import { type ContractVersion, ContractVersions } from '@capstan/api/contract'
import type { CustomResourceDefinition, CustomResourceVersion, JSONSchema } from '@capstan/kube'

/** A contract of upstream's book that a kind can implement. */
export type ContractName = 'InfraCluster' | 'InfraMachine' | 'InfraMachinePool' | 'BootstrapConfig' | 'ControlPlane'

export const ContractNames: readonly ContractName[] = [
  'InfraCluster',
  'InfraMachine',
  'InfraMachinePool',
  'BootstrapConfig',
  'ControlPlane',
]

/** A Kubernetes object of any shape, with the file and line from which it was read. */
export interface Manifest {
  readonly object: { readonly [field: string]: unknown }
  readonly file: string
  /** Line of the file in which the object starts, from 1. */
  readonly line: number
}

/** A CustomResourceDefinition that implements a contract. */
export interface ProviderKind {
  readonly manifest: Manifest
  readonly crd: CustomResourceDefinition
  readonly contract: ContractName
  /** Whether it is a kind of templates, such as `FooMachineTemplate`. */
  readonly isTemplate: boolean
}

/** A contract version that a CustomResourceDefinition claims for one of its versions. */
export interface Claim extends ProviderKind {
  readonly contractVersion: ContractVersion
  readonly version: CustomResourceVersion
  readonly schema: JSONSchema
}

export interface ProviderManifests {
  readonly kinds: readonly ProviderKind[]
  /** All manifests, including those that are not CustomResourceDefinitions with a contract. */
  readonly all: readonly Manifest[]
  /** Whether the manifests are complete: a components file rather than sources for kustomize. */
  readonly isRendered: boolean
  /** Version of the release, such as `v1.2.3`. Absent if the user did not specify it. */
  readonly release?: string
  /** Name of the CustomResourceDefinition of address pools. Absent if the user did not specify it. */
  readonly pool?: string
  /** Text of the documentation for users, if it is available with the manifests. */
  readonly documentation?: string
}

/** Error for a CustomResourceDefinition that no API server accepts: names the manifest and the field. */
export class MalformedManifest extends Error {
  override readonly name = 'MalformedManifest'
}

/** Finds the CustomResourceDefinitions that implement contracts. @throws MalformedManifest */
export function providerManifests(
  manifests: readonly Manifest[],
  options: Omit<ProviderManifests, 'kinds' | 'all'>,
): ProviderManifests {
  const kinds = manifests.filter(isCrd).flatMap((manifest) => {
    const crd = crdOf(manifest)
    const contract = contractOf(crd)
    return contract === undefined ? [] : [{ manifest, crd, contract, isTemplate: crd.spec.names.kind.endsWith('Template') }]
  })
  return { kinds, all: manifests, ...options }
}

export const isCrd = ({ object }: Manifest): boolean => object.kind === 'CustomResourceDefinition'

/** The part of a manifest's metadata that rules read. */
export interface ManifestMetadata {
  readonly name: string
  readonly namespace: string | undefined
  readonly labels: { readonly [key: string]: unknown }
}

/** Returns name, namespace and labels of a manifest, whose metadata may have any shape. */
export function metadataOf({ object }: Manifest): ManifestMetadata {
  const { name, namespace, labels } = record(object.metadata)
  return {
    name: typeof name === 'string' ? name : '',
    namespace: typeof namespace === 'string' ? namespace : undefined,
    labels: record(labels),
  }
}

/** Returns the value if it is an object, otherwise an empty object. */
export const record = (value: unknown): { readonly [field: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as { [field: string]: unknown }) : {}

/** Returns the value if it is a list, otherwise an empty list. */
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/**
 * Returns a claim for each version in a contract label (`cluster.x-k8s.io/<contract version>`), unless the CustomResourceDefinition lacks
 * this version.
 */
export function claimsOf(kind: ProviderKind): Claim[] {
  return ContractVersions.flatMap((contractVersion) =>
    claimedVersions(kind, contractVersion).flatMap((name) => {
      const version = kind.crd.spec.versions.find((candidate) => candidate.name === name)
      return version ? [{ ...kind, contractVersion, version, schema: version.schema?.openAPIV3Schema ?? {} }] : []
    }),
  )
}

/** Returns the versions that the label of the contract version lists. */
export function claimedVersions({ manifest }: ProviderKind, contractVersion: ContractVersion): string[] {
  const label = metadataOf(manifest).labels[labelOf(contractVersion)]
  return typeof label === 'string' && label !== '' ? label.split('_') : []
}

export const labelOf = (contractVersion: ContractVersion): string => `cluster.x-k8s.io/${contractVersion}`

/** Returns the path of a version's schema in the manifest. */
export const schemaPath = ({ crd, version }: Claim): string =>
  `spec.versions[${crd.spec.versions.indexOf(version)}].schema.openAPIV3Schema`

function crdOf(manifest: Manifest): CustomResourceDefinition {
  const { name } = metadataOf(manifest)
  const spec = record(manifest.object.spec)
  const names = record(spec.names)
  const malformed = (field: string, expected: string): MalformedManifest =>
    new MalformedManifest(
      `${manifest.file}:${manifest.line}: CustomResourceDefinition ${JSON.stringify(name)}: ${field}: expected ${expected}`,
    )
  if (name === '') throw malformed('metadata.name', 'a name')
  for (const [field, value] of [
    ['spec.group', spec.group],
    ['spec.names.kind', names.kind],
    ['spec.names.plural', names.plural],
  ] as const) {
    if (typeof value !== 'string' || value === '') throw malformed(field, 'a string that is not empty')
  }
  const versions = list(spec.versions)
  if (versions.length === 0) throw malformed('spec.versions', 'a list of versions (apiextensions.k8s.io/v1)')
  versions.forEach((version, index) => {
    if (typeof record(version).name !== 'string') throw malformed(`spec.versions[${index}].name`, 'a string')
  })
  return manifest.object as unknown as CustomResourceDefinition
}

const groups: Readonly<Record<string, readonly ContractName[]>> = {
  infrastructure: ['InfraCluster', 'InfraMachine', 'InfraMachinePool'],
  bootstrap: ['BootstrapConfig'],
  controlplane: ['ControlPlane'],
}

/** Suffixes of the kind names of each contract. */
const endings: Readonly<Record<ContractName, RegExp>> = {
  InfraCluster: /Cluster(Template)?$/,
  InfraMachine: /Machine(Template)?$/,
  InfraMachinePool: /MachinePool(Template)?$/,
  BootstrapConfig: /Config(Template)?$/,
  ControlPlane: /ControlPlane(Template)?$/,
}

/**
 * Returns the contract of a kind, by upstream's naming conventions: by the suffix of the kind's name, and by the first part of its group
 * (`infrastructure`, `bootstrap` or `controlplane`). In a group with another first part, the kind must have a label with a contract version.
 * Returns `undefined` for kinds without a contract, such as identities.
 */
function contractOf({ metadata, spec }: CustomResourceDefinition): ContractName | undefined {
  const { kind } = spec.names
  if (spec.group === 'cluster.x-k8s.io') return undefined
  const candidates = groups[spec.group.split('.')[0]!]
  const claims = ContractVersions.some((version) => metadata.labels?.[labelOf(version)] !== undefined)
  if (candidates === undefined && !claims) return undefined
  return (candidates ?? ContractNames).find((contract) => endings[contract].test(kind))
}
