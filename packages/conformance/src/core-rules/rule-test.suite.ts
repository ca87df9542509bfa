/** Declares tests of the rules that apply to core: each runs for every contract version of its rule. Only for tests. */
import type { ContractVersion } from '@capstan/api/contract'
import { type CoreEnv, coreEnv } from '@capstan/testing'
import { test } from 'vitest'
import { type CoreRule, type CoreRuleId, coreRules } from './core-rules.ts'

/**
 * Declares the test of a rule, once for each contract version of the rule. `testBody` reads and writes provider objects in contract v1beta2;
 * the environment converts them, so that core reads the contract version under test (see `contract-twin.ts` of `@capstan/testing`).
 */
export function testRule(
  id: CoreRuleId,
  testBody: (env: CoreEnv, contract: ContractVersion) => Promise<void>,
  envOf: (contract: ContractVersion) => Promise<CoreEnv> = (contract) => coreEnv({ contract }),
): void {
  const rule: CoreRule = coreRules.find((candidate) => candidate.id === id)!
  test.each(rule.versions)(`${id} in contract %s: ${rule.sentence}`, async (contract) => {
    const env = await envOf(contract)
    try {
      await testBody(env, contract)
    } finally {
      await env.close()
    }
  })
}
