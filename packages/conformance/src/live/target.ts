/** Finds the kinds under test in the CustomResourceDefinitions of an API server. */
import { contractOfVersion, type ContractVersion, ContractVersions, latestContract, pluralOf } from '@capstan/api/contract'
import { type Client, CustomResourceDefinition, type Kind, type UnknownObject, unknownKind } from '@capstan/kube'
import { claimedVersions, type ContractName, ContractNames, type ProviderKind, record } from '../manifests.ts'

export interface TargetKind {
  readonly contract: ContractName
  readonly crd: CustomResourceDefinition
  /** The kind, in the version that core chooses. */
  readonly kind: Kind<UnknownObject>
  readonly contractVersion: ContractVersion
  /** Each contract version that the kind claims, with each served version of the kind that implements it. */
  readonly claims: readonly { readonly contractVersion: ContractVersion; readonly kind: Kind<UnknownObject> }[]
  /** The kind of the templates for this kind, if it is installed. */
  readonly template: { readonly crd: CustomResourceDefinition; readonly kind: Kind<UnknownObject> } | undefined
  /** Specs that the user gave, in order; the first is used for objects, the second for changes of templates. */
  readonly examples: readonly { readonly [field: string]: unknown }[]
  /** Labels and annotations of the first example. */
  readonly metadata: { readonly labels?: { [key: string]: string }; readonly annotations?: { [key: string]: string } }
}

/** Kinds by contract. */
export type Target = { readonly [contract in ContractName]?: TargetKind }

/**
 * Names of kinds from the user: `LocalCluster`, `LocalCluster.infrastructure.capstan.dev` or
 * `localclusters.infrastructure.capstan.dev`.
 */
export type TargetNames = { readonly [contract in ContractName]?: string }

/** The kind of address pools under test. Pools have no contract version. */
export interface PoolKind {
  readonly crd: CustomResourceDefinition
  readonly kind: Kind<UnknownObject>
  /** Metadata and spec of the pools that scenarios create. */
  readonly example: UnknownObject
}

/** Error for a name that does not identify one kind, or for a kind that cannot be tested, such as a kind without contract label. */
export class NoSuchTarget extends Error {
  override readonly name = 'NoSuchTarget'
  /** The remedy, for the user. */
  readonly hint: string

  constructor(message: string, hint = 'Install the provider first; see kubectl api-resources.') {
    super(message)
    this.hint = hint
  }
}

/**
 * Finds the kinds under test by name. If `names` has no InfraMachine, its kind is found by convention: it has the group of the InfraCluster,
 * and its name ends with Machine in place of Cluster.
 *
 * @throws NoSuchTarget
 */
export async function findTarget(
  client: Client,
  names: TargetNames,
  examples: readonly UnknownObject[],
  signal: AbortSignal,
): Promise<Target> {
  const { items: crds } = await client.list(CustomResourceDefinition, { signal })
  const target: { [contract in ContractName]?: TargetKind } = {}
  for (const contract of ContractNames) {
    const crd =
      names[contract] === undefined ? findByConvention(contract, target, crds) : findByName(contract, names[contract], crds)
    if (crd) target[contract] = targetKind(contract, crd, crds, examples)
  }
  return target
}

/**
 * Finds the kind of address pools.
 *
 * @throws NoSuchTarget also if `examples` has no pool of this kind, because only the user knows which addresses a pool may contain
 */
export async function findPool(
  client: Client,
  name: string,
  examples: readonly UnknownObject[],
  signal: AbortSignal,
): Promise<PoolKind> {
  const { items: crds } = await client.list(CustomResourceDefinition, { signal })
  const crd = findByName('IPAM', name, crds)
  const { group, names, versions } = crd.spec
  const example = examples.find(({ apiVersion, kind }) => apiVersion.startsWith(`${group}/`) && kind === names.kind)
  if (!example) {
    throw new NoSuchTarget(
      `IPAM: no example of kind ${names.kind}`,
      'Write a pool with at least 12 addresses to a file, and name it with --examples.',
    )
  }
  const version = example.apiVersion.slice(group.length + 1)
  if (!versions.some((candidate) => candidate.name === version && candidate.served)) {
    const served = versions.filter((candidate) => candidate.served).map((candidate) => candidate.name)
    throw new NoSuchTarget(
      `IPAM: the API server does not serve version ${version} of kind ${names.kind}`,
      `Use a served version in the example: ${served.join(', ')}.`,
    )
  }
  return { crd, kind: inVersion(crd, version), example }
}

function findByName(
  contract: ContractName | 'IPAM',
  name: string,
  crds: readonly CustomResourceDefinition[],
): CustomResourceDefinition {
  const candidates = crds.filter(({ metadata, spec: { group, names } }) =>
    [names.kind, `${names.kind}.${group}`, metadata.name].includes(name),
  )
  if (candidates.length === 1) return candidates[0]!
  if (candidates.length === 0)
    throw new NoSuchTarget(`${contract}: the API server has no CustomResourceDefinition of kind ${name}`)
  throw new NoSuchTarget(
    `${contract}: ${name} is ambiguous: expected one of ${candidates.map(({ metadata }) => metadata.name).join(', ')}`,
    'Name the kind with its group, or the CustomResourceDefinition.',
  )
}

function findByConvention(contract: ContractName, target: Target, crds: readonly CustomResourceDefinition[]) {
  const cluster = target.InfraCluster?.kind
  if (contract !== 'InfraMachine' || !cluster?.kind.endsWith('Cluster')) return undefined
  const kind = cluster.kind.replace(/Cluster$/, 'Machine')
  return crds.find(({ spec }) => spec.group === cluster.group && spec.names.kind === kind)
}

function targetKind(
  contract: ContractName,
  crd: CustomResourceDefinition,
  crds: readonly CustomResourceDefinition[],
  examples: readonly UnknownObject[],
): TargetKind {
  const { group, names } = crd.spec
  let version: string
  let contractVersion: ContractVersion
  try {
    version = latestContract(crd).version
    contractVersion = contractOfVersion(crd, version)
  } catch (err) {
    throw new NoSuchTarget(
      `${contract}: ${err instanceof Error ? err.message : String(err)}`,
      'Add a contract label to the CustomResourceDefinition, for example cluster.x-k8s.io/v1beta2: v1beta2.',
    )
  }
  const provider: ProviderKind = { manifest: { object: crd as never, file: '', line: 0 }, crd, contract, isTemplate: false }
  const templateName = `${names.kind}Template`
  const template = crds.find(({ spec }) => spec.group === group && spec.names.kind === templateName)
  const ownExamples = examples.filter(
    ({ apiVersion, kind }) => apiVersion.startsWith(`${group}/`) && (kind === names.kind || kind === templateName),
  )
  const { labels, annotations } = ownExamples[0]?.metadata ?? {}
  return {
    contract,
    crd,
    kind: inVersion(crd, version),
    contractVersion,
    claims: ContractVersions.flatMap((claimed) =>
      claimedVersions(provider, claimed)
        .filter((name) => crd.spec.versions.some((one) => one.name === name && one.served))
        .map((name) => ({ contractVersion: claimed, kind: inVersion(crd, name) })),
    ),
    template: template && { crd: template, kind: inVersion(template, templateVersion(template, version)) },
    examples: ownExamples.map(({ kind, spec }) => record(kind === templateName ? record(record(spec).template).spec : spec)),
    metadata: { ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) },
  }
}

/** Returns the version in which core reads a template, by the contract labels of its CustomResourceDefinition; without labels, `fallback`. */
function templateVersion(template: CustomResourceDefinition, fallback: string): string {
  try {
    return latestContract(template).version
  } catch {
    return fallback
  }
}

const inVersion = ({ spec }: CustomResourceDefinition, version: string): Kind<UnknownObject> =>
  unknownKind({
    apiVersion: `${spec.group}/${version}`,
    kind: spec.names.kind,
    plural: spec.names.plural || pluralOf(spec.names.kind),
    scope: spec.scope as Kind['scope'],
  })
