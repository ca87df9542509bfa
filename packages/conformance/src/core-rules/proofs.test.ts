import { describe, expect, test } from 'vitest'
import { isChecked } from '../rule.ts'
import { rules } from '../rules/index.ts'
import { localProvider } from '../local-provider.ts'
import { coreRules } from './core-rules.ts'
import { twinCases, withoutTwinCase } from './twin-cases.ts'
import { coreProofs, familyOf, violatedRules, unproved } from './proofs.suite.ts'

describe('rules that apply to core', () => {
  const proofs = coreProofs()

  test.each(coreRules.map(({ id }) => id))('%s has tests in exactly one file', (id) => {
    expect(proofs.get(id)).toHaveLength(1)
  })

  test.each(coreRules.map(({ id }) => id))(
    '%s has cases in interop/core-twin, which compares core with upstream, or a reason for having none',
    (id) => {
      expect([id in twinCases, id in withoutTwinCase].filter(Boolean)).toHaveLength(1)
    },
  )

  test('rule ids are unique, and tests contain no other ids', () => {
    const ids: string[] = coreRules.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect([...proofs.keys()].filter((id) => !ids.includes(id))).toEqual([])
  })
})

describe('rules that apply to providers', () => {
  const checked = rules.filter((rule) => isChecked(rule) || (rule.live ?? []).length > 0)
  const violated = violatedRules()
  const proved = new Set(checked.filter(({ id }) => violated.has(id)).map(familyOf))

  test.each(checked.map((rule) => [rule.id, familyOf(rule)] as const))(
    '%s, or a rule with the same check, is violated by a mutant or an invalid manifest, or has a reason why no test violates it',
    (_, family) => {
      expect(proved.has(family) || family in unproved).toBe(true)
    },
  )

  test('reasons are given only for rules that no test violates', () => {
    const families = new Set(checked.map(familyOf))
    expect(Object.keys(unproved).filter((family) => proved.has(family) || !families.has(family))).toEqual([])
  })
})

describe('descriptions of how the local provider follows the rules', () => {
  // The local provider has no kind for pools of IP addresses.
  const applying = rules.filter(({ pages }) => !pages.includes('IPAM')).map(({ id }) => id)

  test.each(applying)('%s has a description', (id) => {
    expect(localProvider[id]).toMatch(/^\S.*\.$/)
  })

  test('exist for no other rules', () => {
    expect(Object.keys(localProvider).filter((id) => !applying.includes(id))).toEqual([])
  })
})
