/**
 * Runs the rules of `capstan lint` on upstream's own providers. The providers must violate no rule of level MUST, and the findings of level
 * SHOULD must be exactly `knownFindings`. Findings of level MAY are ignored. Each section that a rule names must be a heading of upstream's
 * book.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CoreRule, coreRules, lint, linkOf, metadataOf, providerManifests, type Rule, rules } from '@capstan/conformance'
import { readManifests } from '../packages/cli/src/lint/read-manifests.ts'
import { Checks } from './processes/capstan-process.ts'
import type { Suite } from './shared/suite.ts'
import { moduleFolder } from './shared/tools.ts'
import { components, modules } from './upstream/managers.ts'

const group = 'infrastructure.cluster.x-k8s.io'

/**
 * Known findings of level SHOULD on upstream's providers of release v1.14, by the name of the provider's program. The findings are correct:
 * the contract labels of all kinds name the API version v1beta1, which DevMachinePool and DevMachinePoolTemplate do not have; DevMachinePool
 * and DockerMachinePool report only `status.ready`, the field that upstream's core reads.
 */
const knownFindings: Readonly<Record<string, readonly string[]>> = {
  capd: [
    `other-label-versions devmachinepools.${group}`,
    `other-label-versions devmachinepooltemplates.${group}`,
    `infra-machine-pool.both-ready devmachinepools.${group}`,
    `infra-machine-pool.both-ready dockermachinepools.${group}`,
  ],
}

export const lintSuite: Suite = {
  shows: "upstream's own providers violate no rule of level MUST of capstan lint",
  ci: true,
  tools: ['capi-core', 'cabpk', 'kcp', 'capd'],
  async run() {
    const checks = new Checks()
    for (const { tool, module, config } of components.filter(({ isProvider }) => isProvider)) {
      const { manifests } = readManifests(join(await moduleFolder(tool, module), config, 'crd'))
      const { findings } = lint(providerManifests(manifests, { isRendered: false }), rules)
      const findingTexts = findings
        .filter(({ rule }) => rule.level !== 'MAY')
        .map(({ rule, manifest }) => `${rule.id} ${metadataOf(manifest).name}`)
      const violations = findings.filter(({ rule }) => rule.level === 'MUST').map(({ rule, message }) => `${rule.id}: ${message}`)
      checks.check(`${tool}: violates no rule of level MUST`, violations.length === 0, violations)
      const expected = knownFindings[tool] ?? []
      checks.check(
        `${tool}: has exactly the known findings`,
        findingTexts.toSorted().join() === expected.toSorted().join(),
        findingTexts,
      )
    }
    const book = join(await moduleFolder('capi-core', modules.core), 'docs/book/src/developer/providers/contracts')
    for (const rule of [...rules, ...coreRules] as (Rule | CoreRule)[]) {
      for (const page of rule.pages) {
        const file = `${/contracts\/([\w-]+)#/.exec(linkOf(rule, page))![1]}.md`
        const headings = readFileSync(join(book, file), 'utf8').matchAll(/^#+ (.*?)\s*$/gm)
        const hasSection = [...headings].some(([, heading]) => heading === rule.section)
        checks.check(`${rule.id}: ${file} has the section "${rule.section}"`, hasSection)
      }
    }
    return checks
  },
}
