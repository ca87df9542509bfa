/** Builds the text of docs/reference/contracts.md: the rules of the provider contracts, from their declarations. */
import {
  coreRules,
  isChecked,
  linkOf,
  Levels,
  localProvider,
  type PageName,
  type Rule,
  rules,
  twinCases,
  withoutTwinCase,
} from '@capstan/conformance'
import { coreProofs, familyOf, unproved } from '../packages/conformance/src/core-rules/proofs.suite.ts'
import { warning } from './gen-pages.ts'

const titles: Readonly<Record<PageName, string>> = {
  InfraCluster: 'InfraCluster',
  InfraMachine: 'InfraMachine',
  InfraMachinePool: 'InfraMachinePool',
  BootstrapConfig: 'BootstrapConfig',
  ControlPlane: 'ControlPlane',
  IPAM: 'IPAM',
  clusterctl: 'clusterctl',
}

/** Whether a rule is on several pages of upstream's book. These rules have a separate section. */
const isShared = ({ pages }: Rule): boolean => pages.length > 1

export function contractsPage(): string {
  const checked = rules.filter(isChecked)
  const live = rules.filter(({ live = [] }) => live.length > 0)
  const counts = Levels.map((level) => `${rules.filter((rule) => rule.level === level).length} ${level}`).join(', ')
  return [
    warning,
    '# Contracts',
    '',
    `${rules.length} rules for providers (${counts}), of which \`capstan lint\` checks ${checked.length} and \`capstan conform\` ${live.length} at run time.`,
    `${coreRules.length} rules for core, each proved by a test for each of its contract versions.`,
    'Links lead to the pages of upstream’s book, which are authoritative. For each rule for providers except those of IPAM, the page describes how [the local provider](../../packages/local/README.md), which has no address pools, follows it.',
    '',
    'Entries of a rule for providers:',
    '',
    '- **Otherwise**: what happens if a provider violates the rule. **Reports**: issues about such violations.',
    '- **Lint checks**: the parts of the manifests that `capstan lint` checks.',
    '- **Conform checks**: the objects that `capstan conform` checks, with the [scenario](../../packages/conformance/README.md#test-a-running-provider).',
    '- **The local provider**: how the local provider follows the rule.',
    '- **No mutant violates this rule**: the reason. Mutants are variants of the local provider and of an IPAM provider, each of which violates a rule; tests verify that the checks detect all mutants except those that are declared as undetected.',
    '',
    ...sectionOf('All contracts', rules.filter(isShared)),
    ...(Object.keys(titles) as PageName[]).flatMap((page) =>
      sectionOf(
        titles[page],
        rules.filter((rule) => !isShared(rule) && rule.pages[0] === page),
      ),
    ),
    ...coreSection(),
  ].join('\n')
}

function coreSection(): string[] {
  const proofs = coreProofs()
  return [
    '## Core',
    '',
    'Behaviour of core on which providers rely. "Core will …" in the book counts as MUST. The tests act as a provider of each contract version; their names begin with the id of the rule. For IPAM, whose kinds are core’s own, a contract version is an API version of these kinds.',
    'Cases of [core-twin](../../interop/README.md#core-beside-upstreams-core) compare this behaviour with that of upstream’s core.',
    '',
    ...coreRules.flatMap((rule) => [
      `### ${rule.id}`,
      '',
      `**${rule.level}** ${rule.sentence}`,
      '',
      `- Upstream: ${rule.pages.map((page) => `[${page}](${linkOf(rule, page)})`).join(', ')}, section "${rule.section}".`,
      `- Applies to: contract ${rule.versions.join(' and ')}.`,
      `- Proved by: ${listed((proofs.get(rule.id) ?? []).map((file) => `packages/${file}`))}.`,
      twinCases[rule.id]
        ? `- Cases of core-twin: ${listed(twinCases[rule.id]!)}.`
        : `- No case of core-twin: ${withoutTwinCase[rule.id]}`,
      '',
    ]),
  ].map(withoutTags)
}

const listed = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ')

const sectionOf = (title: string, rules: readonly Rule[]): string[] => [`## ${title}`, '', ...rules.flatMap(entryOf)]

/** Escapes `<` outside of code, so that Markdown does not read a placeholder such as `<cluster>` as an HTML tag. */
const withoutTags = (line: string): string => line.replace(/(`[^`]*`)|</g, (_, code: string | undefined) => code ?? '\\<')

function entryOf(rule: Rule): string[] {
  const { id, level, section, versions, applies, sentence, why, cases, check } = rule
  return [
    `### ${id}`,
    '',
    `**${level}** ${sentence}`,
    '',
    `- Upstream: ${rule.pages.map((page) => `[${page}](${linkOf(rule, page)})`).join(', ')}, section "${section}".`,
    `- Applies to: ${applies}; contract ${versions.join(' and ')}.`,
    `- Otherwise: ${why}`,
    ...(cases ? [`- Reports: ${cases.map((issue) => issueLink(issue)).join(', ')}.`] : []),
    isChecked(rule) ? `- Lint checks: ${rule.check.looksAt}` : `- Lint does not check it: ${'none' in check ? check.none : ''}.`,
    ...(rule.live ?? []).map(({ looksAt, scenario }) => `- Conform checks, in scenario ${scenario}: ${looksAt}`),
    ...(rule.id in localProvider ? [`- The local provider: ${localProvider[rule.id]}`] : []),
    ...(familyOf(rule) in unproved ? [`- No mutant violates this rule: ${unproved[familyOf(rule)]}`] : []),
    '',
  ].map(withoutTags)
}

const issueLink = (name: string): string => `[${name}](https://github.com/${name.replace('#', '/issues/')})`
