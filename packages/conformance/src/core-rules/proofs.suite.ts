/**
 * Finds out which rules have a test, from the sources of the tests and the declared mutants. A rule that applies to core is tested by a call
 * of `testRule` with its id. A rule that applies to providers is tested by a violation: an invalid manifest in the test of lint, or a mutant,
 * which is a provider with a fault.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { mutants } from '../mutants/mutants.ts'
import type { Rule } from '../rule.ts'
import { perContract } from '../rules/per-contract.ts'

/** Test files of each rule, by id of the rule. */
export type Proofs = ReadonlyMap<string, readonly string[]>

const packages = fileURLToPath(new URL('../../../', import.meta.url))

function* testFiles(): Generator<string> {
  for (const file of readdirSync(packages, { recursive: true, encoding: 'utf8' })) {
    const path = file.replaceAll('\\', '/')
    if (path.endsWith('.test.ts') && !/(^|\/)(node_modules|dist|templates)\//.test(path)) yield path
  }
}

const filesByRuleId = (files: Iterable<string>, pattern: RegExp): Proofs => {
  const filesByRule = new Map<string, string[]>()
  for (const file of files) {
    for (const [, id] of readFileSync(`${packages}${file}`, 'utf8').matchAll(pattern)) {
      const known = filesByRule.get(id!) ?? []
      if (!known.includes(file)) filesByRule.set(id!, [...known, file])
    }
  }
  return filesByRule
}

/**
 * Returns the test files of each rule that applies to core, by id of the rule: files that call `testRule` and contain the id, as an
 * argument or in a list over which they loop.
 */
export const coreProofs = (): Proofs =>
  filesByRuleId(
    [...testFiles()].filter((file) => readFileSync(`${packages}${file}`, 'utf8').includes('testRule(')),
    /'(core\.[\w.-]+)'/g,
  )

/**
 * Returns the ids of rules that an invalid manifest in the test of lint or a detected mutant violates. Also contains other quoted words of
 * the test of lint.
 */
export const violatedRules = (): ReadonlySet<string> =>
  new Set([
    ...filesByRuleId(['conformance/src/lint.test.ts'], /'([a-z-]+(?:\.[a-z-]+)?)'/g).keys(),
    ...[...mutants.declared, ...mutants.controllerMutants]
      .filter(({ survives }) => survives === undefined)
      .map(({ rule }) => rule),
  ])

const suffixOf = (id: string): string => id.slice(id.indexOf('.'))

/** Ids of the rules that one shared declaration makes for several contracts. */
const sharedRules: ReadonlySet<string> = new Set(Object.values(perContract).flatMap((rules) => rules.map(({ id }) => id)))

/**
 * Returns the family of a rule, whose rules share a check, so that one test is enough for all of them: the suffix of the id for a rule that
 * several contracts have, otherwise the whole id.
 */
export const familyOf = ({ id }: Rule): string =>
  sharedRules.has(id) || ['.dry-run', '.several-instances'].includes(suffixOf(id)) ? suffixOf(id) : id

/** Rules that no test violates, by family, with the reason. */
export const unproved: Readonly<Record<string, string>> = {
  'type-and-object-meta': 'No API server serves an object without these fields.',
  '.owner-first': 'The local provider writes nothing for an object without an owner, so a mutant has no write to change.',
  '.dry-run': 'The rule is about webhooks, and a mutant does not change the webhooks of the local provider.',
  'clusterctl.owner-references': 'Core restores the owner references that a mutant removes.',
}
