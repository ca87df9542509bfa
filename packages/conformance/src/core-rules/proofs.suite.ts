/**
 * Finds the test that proves each rule in the sources of the tests. A rule that binds core is proved by `testRule` with its id; a rule that
 * binds providers is proved by a test that breaks it: an invalid manifest in the test of lint, or a mutant of the local provider.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { mutants } from '../mutants/mutants.ts'
import type { Rule } from '../rule.ts'
import { perContract } from '../rules/per-contract.ts'

/** Files that prove rules, by id of the rule. */
export type Proofs = ReadonlyMap<string, readonly string[]>

const packages = fileURLToPath(new URL('../../../', import.meta.url))

function* testFiles(): Generator<string> {
  for (const file of readdirSync(packages, { recursive: true, encoding: 'utf8' })) {
    const path = file.replaceAll('\\', '/')
    if (path.endsWith('.test.ts') && !/(^|\/)(node_modules|dist|templates)\//.test(path)) yield path
  }
}

const inFiles = (files: Iterable<string>, pattern: RegExp): Proofs => {
  const filesByRule = new Map<string, string[]>()
  for (const file of files) {
    for (const [, id] of readFileSync(`${packages}${file}`, 'utf8').matchAll(pattern)) {
      const files = filesByRule.get(id!) ?? []
      if (!files.includes(file)) filesByRule.set(id!, [...files, file])
    }
  }
  return filesByRule
}

/** Proofs of the rules that bind core: calls of `testRule`, and lists of rules that a loop gives to it. */
export const coreProofs = (): Proofs =>
  inFiles(
    [...testFiles()].filter((file) => readFileSync(`${packages}${file}`, 'utf8').includes('testRule(')),
    /'(core\.[\w.-]+)'/g,
  )

/** Ids of rules that a mistake in the test of lint or a mutant of the local provider breaks. */
export const brokenRules = (): ReadonlySet<string> =>
  new Set([
    ...inFiles(['conformance/src/lint.test.ts'], /'([a-z-]+(?:\.[a-z-]+)?)'/g).keys(),
    ...[...mutants.declared, ...mutants.behaving].filter(({ survives }) => survives === undefined).map(({ rule }) => rule),
  ])

const suffixOf = (id: string): string => id.slice(id.indexOf('.'))

/** Ends of the ids of rules that one function declares for several contracts. */
const families: ReadonlySet<string> = new Set([
  ...Object.values(perContract).flatMap((rules) => rules.map(({ id }) => suffixOf(id))),
  '.dry-run',
  '.several-instances',
])

/** Rules that one function declares for several contracts have one check: a proof for one contract proves it. */
export const familyOf = ({ id }: Rule): string => (families.has(suffixOf(id)) ? suffixOf(id) : id)

/** Rules that no test breaks, with the reason. By family. */
export const unproved: Readonly<Record<string, string>> = {
  'type-and-object-meta': 'No API server serves an object without these fields.',
  '.owner-first': 'A mutant changes requests of the local provider, which makes none for an object without an owner.',
  '.dry-run': 'A mutant changes requests of the local provider; this rule is kept by its webhooks.',
  'clusterctl.owner-references': 'Core sets the owner references again that a mutant removes.',
}
