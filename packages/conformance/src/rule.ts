/** Declaration of a rule of the provider contracts, used by lint and for the reference page. */
import type { ContractVersion } from '@capstan/api/contract'
import type { LiveCheck } from './live/checks/check.ts'
import type { ContractName, Manifest, ProviderManifests } from './manifests.ts'

export type Level = 'MUST' | 'SHOULD' | 'MAY'

/** Most important first. */
export const Levels: readonly Level[] = ['MUST', 'SHOULD', 'MAY']

/** Pages of upstream's book that have rules. */
export type PageName = ContractName | 'IPAM' | 'clusterctl'

/** A place where a provider breaks a rule. */
export interface Problem {
  readonly manifest: Manifest
  /** Path of the field in the manifest, such as `metadata.labels`. */
  readonly path: string
  /** The found and the expected value. */
  readonly message: string
  /** The remedy. */
  readonly edit: string
}

export interface StaticCheck {
  /** The checked manifests, in a sentence for the reference page. */
  readonly looksAt: string
  /** Returns all problems, or `undefined` when the rule is not applicable to the manifests. */
  run(provider: ProviderManifests): Problem[] | undefined
}

export interface Rule {
  /** Stable: findings, suppressions and tests name the rule by it. */
  readonly id: string
  readonly level: Level
  /** Contracts that the rule belongs to, or `IPAM`, or `clusterctl`. */
  readonly pages: readonly PageName[]
  /** Heading in upstream's book, the same on each of the pages. */
  readonly section: string
  readonly versions: readonly ContractVersion[]
  /** When the rule applies. */
  readonly applies: string
  /** The requirement for the provider. */
  readonly sentence: string
  /** Effect in core or clusterctl when a provider violates the rule. */
  readonly why: string
  /** Reports of providers that broke the rule, or of core where it differs from upstream's book. */
  readonly cases?: readonly string[]
  /** The static check, or the reason why manifests cannot show whether the rule is kept. */
  readonly check: StaticCheck | { readonly none: string }
  /** Checks of a provider that runs. */
  readonly live?: readonly LiveCheck[]
}

const pageFiles: Readonly<Record<PageName, string>> = {
  InfraCluster: 'infra-cluster',
  InfraMachine: 'infra-machine',
  InfraMachinePool: 'infra-machinepool',
  BootstrapConfig: 'bootstrap-config',
  ControlPlane: 'control-plane',
  IPAM: 'ipam',
  clusterctl: 'clusterctl',
}

/** Section of upstream's book with the rule, on the contract's first page unless a page is given. */
export function linkOf({ pages, section }: Pick<Rule, 'pages' | 'section'>, page: PageName = pages[0]!): string {
  const anchor = section
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .trim()
    .replace(/\s/g, '-')
  return `https://cluster-api.sigs.k8s.io/developer/providers/contracts/${pageFiles[page]}#${anchor}`
}

export const isChecked = (rule: Rule): rule is Rule & { readonly check: StaticCheck } => 'run' in rule.check
