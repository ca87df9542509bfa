/** Declaration of a rule of the provider contracts, used by `capstan lint`, by `capstan conform` and for the reference page. */
import type { ContractVersion } from '@capstan/api/contract'
import type { LiveCheck } from './live/checks/check.ts'
import type { ContractName, Manifest, ProviderManifests } from './manifests.ts'

export type Level = 'MUST' | 'SHOULD' | 'MAY'

/** All levels, the most important first. */
export const Levels: readonly Level[] = ['MUST', 'SHOULD', 'MAY']

/** Name of a page of upstream's book that states rules. */
export type PageName = ContractName | 'IPAM' | 'clusterctl'

/** A violation of a rule, with its place in the manifests. */
export interface Problem {
  readonly manifest: Manifest
  /** Path of the field in the manifest, such as `metadata.labels`. */
  readonly path: string
  /** Describes the violation. */
  readonly message: string
  /** The remedy. */
  readonly edit: string
}

/** A check of the manifests of a provider, which `capstan lint` and `capstan conform` run. */
export interface StaticCheck {
  /** The checked parts of the manifests, for the reference page. */
  readonly looksAt: string
  /** Returns all problems; `undefined` if the rule does not apply to the manifests. */
  run(provider: ProviderManifests): Problem[] | undefined
}

export interface Rule {
  /** Stable identifier, by which findings, tests, and the options `--only` and `--skip` of `capstan conform` refer to the rule. */
  readonly id: string
  readonly level: Level
  /** Pages that state the rule: contracts, `IPAM` or `clusterctl`. */
  readonly pages: readonly PageName[]
  /** Heading in upstream's book; it is the same on all `pages`. */
  readonly section: string
  /** Contract versions in which the rule applies. */
  readonly versions: readonly ContractVersion[]
  /** Condition under which the rule applies. */
  readonly applies: string
  /** The requirement for the provider. */
  readonly sentence: string
  /** Effect in core or clusterctl when a provider violates the rule. */
  readonly why: string
  /**
   * GitHub issues, as `owner/repository#number`: reports of providers that violated the rule, or of differences between core and upstream's
   * book.
   */
  readonly cases?: readonly string[]
  /** The static check, or the reason why manifests cannot show whether the provider follows the rule. */
  readonly check: StaticCheck | { readonly none: string }
  /** Checks of a running provider, which `capstan conform` runs. */
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

/** Returns the URL of the section with the rule in upstream's book, on the first of the rule's pages unless a page is given. */
export function linkOf({ pages, section }: Pick<Rule, 'pages' | 'section'>, page: PageName = pages[0]!): string {
  const anchor = section
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .trim()
    .replace(/\s/g, '-')
  return `https://cluster-api.sigs.k8s.io/developer/providers/contracts/${pageFiles[page]}#${anchor}`
}

/** Whether the rule has a static check. */
export const isChecked = (rule: Rule): rule is Rule & { readonly check: StaticCheck } => 'run' in rule.check
