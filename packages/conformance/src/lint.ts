/** Static checks of a provider's manifests against the rules of the contracts. */
import type { ProviderManifests } from './manifests.ts'
import { isChecked, Levels, type Problem, type Rule } from './rule.ts'

export interface Finding extends Problem {
  readonly rule: Rule
}

export interface LintReport {
  /** Findings of MUST rules first, then SHOULD and MAY; findings of a level are in the order of rules and manifests. */
  readonly findings: readonly Finding[]
  /** Rules that were checked, with or without findings. */
  readonly checked: readonly Rule[]
  /** Rules that were not applicable, for example because the manifests lack the kind, roles or release metadata that the rule checks. */
  readonly notApplicable: readonly Rule[]
}

/** Checks every rule that has a static check. */
export function lint(provider: ProviderManifests, rules: readonly Rule[]): LintReport {
  const findings: Finding[] = []
  const checked: Rule[] = []
  const notApplicable: Rule[] = []
  for (const rule of rules.filter(isChecked)) {
    const problems = rule.check.run(provider)
    if (problems === undefined) {
      notApplicable.push(rule)
      continue
    }
    checked.push(rule)
    for (const problem of problems) findings.push({ ...problem, rule })
  }
  findings.sort((a, b) => Levels.indexOf(a.rule.level) - Levels.indexOf(b.rule.level))
  return { findings, checked, notApplicable }
}
