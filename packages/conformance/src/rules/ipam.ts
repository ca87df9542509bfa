/** Rules of IPAM: for providers of IP addresses, and for infrastructure providers that request addresses. */
import { ContractVersions, pluralOf } from '@capstan/api/contract'
import type { CustomResourceDefinition, JSONSchema } from '@capstan/kube'
import { isCrd, type Manifest, type ProviderManifests } from '../manifests.ts'
import {
  addressClaimOwner,
  addressFinalizer,
  addressName,
  addressPoolOwner,
  addressRef,
  claimFinalizer,
  claimPausing,
  claimsFulfilled,
  foreignClaimsLeft,
  poolReady,
  released,
} from '../live/checks/addresses.ts'
import type { LiveCheck } from '../live/checks/check.ts'
import type { Level, Problem, Rule, StaticCheck } from '../rule.ts'
import { fieldAt } from '../schema-fields.ts'

type Pool = Manifest & { readonly object: CustomResourceDefinition }

/**
 * Returns the kinds of address pools: the kind that the user named, and all kinds that end with Pool in groups with the part `ipam`.
 * No label marks kinds of address pools.
 */
export const poolsOf = ({ all, pool }: ProviderManifests): Pool[] =>
  all.filter((manifest): manifest is Pool => {
    if (!isCrd(manifest)) return false
    const { metadata, spec } = (manifest as Pool).object
    if (metadata.name === pool) return true
    const { group, names } = spec
    return /(^|\.)ipam\./.test(`${group}.`) && names.kind.endsWith('Pool')
  })

const ofEachPool = (looksAt: string, check: (pool: Pool) => Problem[]): StaticCheck => ({
  looksAt: `kinds that end with Pool, in a group with the part ipam: ${looksAt}`,
  run(provider) {
    const pools = poolsOf(provider)
    return pools.length === 0 ? undefined : pools.flatMap(check)
  },
})

function nameProblems(manifest: Pool): Problem[] {
  const { metadata, spec } = manifest.object
  const expected = `${pluralOf(spec.names.kind)}.${spec.group}`
  if (metadata.name === expected) return []
  return [
    {
      manifest,
      path: 'metadata.name',
      message: `Name is ${metadata.name}, expected ${expected} for kind ${spec.names.kind}`,
      edit: `Set spec.names.plural to ${pluralOf(spec.names.kind)} and metadata.name to ${expected}.`,
    },
  ]
}

function conditionProblems(manifest: Pool): Problem[] {
  return manifest.object.spec.versions.flatMap(({ name, served, schema }, index): Problem[] => {
    const conditions = fieldAt((schema?.openAPIV3Schema ?? {}) as JSONSchema, 'status.conditions')
    if (!served || conditions === 'any' || conditions?.type === 'array') return []
    return [
      {
        manifest,
        path: `spec.versions[${index}].schema.openAPIV3Schema: status.conditions`,
        message: `Version ${name} has ${conditions ? `conditions of type ${conditions.type}` : 'no status.conditions'}, expected a list`,
        edit: 'Add status.conditions ([]metav1.Condition) with a condition Ready.',
      },
    ]
  })
}

const behaviour = { none: 'behaviour of the controller' } as const
const consumerBehaviour = {
  none: 'behaviour of the controller. conform does not test it either: its scenarios have no machines with addresses from pools',
} as const

/** Sections of upstream's page, each with the objects or providers to which its rules apply. */
const sections = {
  data: { heading: 'Data Types', applies: 'kinds of address pools' },
  normal: { heading: 'Normal IPAddressClaim', applies: 'IPAM providers' },
  deleted: { heading: 'Deleted IPAddressClaim', applies: 'IPAM providers' },
  consumer: { heading: 'Infrastructure Provider', applies: 'infrastructure providers that take addresses from pools' },
} as const

const rule = (
  level: Level,
  id: string,
  section: keyof typeof sections,
  sentence: string,
  why: string,
  check: Rule['check'] | LiveCheck = section === 'consumer' ? consumerBehaviour : behaviour,
): Rule => ({
  id: `ipam.${id}`,
  level,
  pages: ['IPAM'],
  section: sections[section].heading,
  versions: ContractVersions,
  applies: sections[section].applies,
  sentence,
  why,
  ...('scenario' in check ? { check: behaviour, live: [check] } : { check }),
})

export const ipamRules: readonly Rule[] = [
  rule(
    'MUST',
    'pool-crd',
    'data',
    'A CustomResourceDefinition declares the kind of pools. Its name is the plural that Cluster API computes from the kind, a dot, and the group.',
    'Clients that know a pool from spec.poolRef alone do not find its CustomResourceDefinition.',
    ofEachPool('`metadata.name`.', nameProblems),
  ),
  rule(
    'MUST',
    'type-and-object-meta',
    'data',
    'Pools have apiVersion, kind and metadata, as every Kubernetes object has.',
    'No owner reference from an IPAddress to its pool is possible.',
    { none: 'the API server adds these fields to every kind that a CustomResourceDefinition declares' },
  ),
  {
    ...rule(
      'SHOULD',
      'pool-conditions',
      'data',
      'Pools have status.conditions, with a condition Ready.',
      'Users see nothing of the state of a pool.',
      ofEachPool('`status.conditions` of each served version.', conditionProblems),
    ),
    live: [poolReady],
  },
  rule(
    'MUST',
    'claims',
    'normal',
    'The provider watches IPAddressClaims, and allocates an address for each new claim whose spec.poolRef names one of its pools.',
    'A claim stays without an address, and the machine that it is for is not provisioned.',
    claimsFulfilled,
  ),
  rule(
    'MUST',
    'foreign-claims',
    'normal',
    'The provider ignores claims that refer to pools of other providers.',
    'Two providers allocate addresses for one claim.',
    foreignClaimsLeft,
  ),
  rule(
    'MUST',
    'pausing',
    'normal',
    'The provider does nothing for a claim while its Cluster (spec.clusterName, or the label cluster.x-k8s.io/cluster-name) is paused or does not exist, or while the claim has the annotation cluster.x-k8s.io/paused.',
    'clusterctl move pauses a Cluster and copies its objects: an address is allocated twice, or released while it is in use.',
    claimPausing,
  ),
  rule(
    'SHOULD',
    'claim-finalizer',
    'normal',
    'The provider adds a finalizer to the claim before it allocates an address.',
    'A claim is deleted without notice, and its address is never released.',
    claimFinalizer,
  ),
  rule(
    'SHOULD',
    'address-name',
    'normal',
    'The IPAddress has the name of its claim.',
    'After a crash before status.addressRef is written, a second address is allocated.',
    addressName,
  ),
  rule(
    'MUST',
    'address-claim-owner',
    'normal',
    'The IPAddress has its claim as an owner, with controller and blockOwnerDeletion set to true.',
    'clusterctl move leaves the IPAddress behind, and the garbage collector does not delete it.',
    addressClaimOwner,
  ),
  rule(
    'MUST',
    'address-pool-owner',
    'normal',
    'The IPAddress has its pool as an owner, with controller false and blockOwnerDeletion true.',
    'A pool is deleted while its addresses are in use.',
    addressPoolOwner,
  ),
  rule(
    'SHOULD',
    'address-finalizer',
    'normal',
    'The IPAddress has a finalizer that prevents its deletion, such as ipam.cluster.x-k8s.io/protect-address.',
    'An address that a user deletes is allocated again while a machine uses it.',
    addressFinalizer,
  ),
  rule(
    'MUST',
    'address-ref',
    'normal',
    'The provider sets status.addressRef of the claim to the IPAddress.',
    'The infrastructure provider waits for this field, and the machine is not provisioned.',
    addressRef,
  ),
  rule(
    'MUST',
    'release',
    'deleted',
    'For a deleted claim, the provider releases the address, deletes the IPAddress, and removes its finalizers from the IPAddress and the claim.',
    'The claim is never deleted, and neither is the infrastructure machine that owns it.',
    released,
  ),
  {
    ...rule(
      'MUST',
      'move',
      'normal',
      'Pools that belong to a Cluster have the label cluster.x-k8s.io/cluster-name.',
      'clusterctl move leaves them behind.',
      { none: 'manifests do not show the labels of pools' },
    ),
    section: 'Clusterctl Move',
    applies: 'pools that are to be moved with a Cluster',
  },
  rule(
    'MUST',
    'consumer-pool',
    'consumer',
    'The infrastructure machine has a field that names the pool, and spec.poolRef of its claims refers to that pool.',
    'Users cannot choose a pool.',
    { none: 'the contract does not name the field' },
  ),
  rule(
    'SHOULD',
    'consumer-owner',
    'consumer',
    'The claim is owned by the infrastructure machine or by an object that the machine owns, with controller and blockOwnerDeletion set to true.',
    'clusterctl move leaves the claim behind, and the machine is deleted while it has an address.',
  ),
  rule(
    'SHOULD',
    'consumer-cluster',
    'consumer',
    'The claim has spec.clusterName, or the label cluster.x-k8s.io/cluster-name.',
    'The IPAM provider does not see that the Cluster is paused.',
  ),
  rule(
    'SHOULD',
    'consumer-name',
    'consumer',
    'The name of the claim is derived from that of the infrastructure machine.',
    'After a crash the provider creates a second claim.',
  ),
  rule(
    'MUST',
    'consumer-address',
    'consumer',
    'The provider waits for status.addressRef of the claim, and reads the address from that IPAddress.',
    'The machine has no address, because the claim itself contains none.',
  ),
  rule(
    'SHOULD',
    'consumer-deletion',
    'consumer',
    'The claim is deleted with the infrastructure machine, which is not deleted before the claim.',
    'Addresses are lost, or allocated to another machine too early.',
  ),
  rule(
    'MUST',
    'single-stack',
    'consumer',
    'For an IPv4 and an IPv6 address there are two claims, of two pools.',
    'The machine has only one of the two addresses, because an IPAddress contains one.',
  ),
]
