/** Messages between `scripts/mutants.ts` and its test process, as files. */
import type { Mutant } from './operators.ts'

/** A mutant of one file, and the test files to run with it, nearest first. */
export interface MutantTask extends Pick<Mutant, 'start' | 'end' | 'replacement'> {
  readonly id: string
  readonly file: string
  readonly tests: readonly string[]
}

export type Task =
  /** Records which statements of `files` each of the `tests` reaches; all tests if the list is empty. */
  | { readonly kind: 'coverage'; readonly files: readonly string[]; readonly tests: readonly string[]; readonly folder: string }
  | { readonly kind: 'mutants'; readonly mutants: readonly MutantTask[]; readonly results: string }

/** One line of `results`. If a mutant has only a line `started`, the mutant ended the process or exceeded the time limit. */
export type Result =
  | { readonly id: string; readonly state: 'started' }
  | { readonly id: string; readonly state: 'survived'; readonly seconds: number }
  | { readonly id: string; readonly state: 'killed'; readonly seconds: number; readonly by: string }

/**
 * The statements that one test file reaches, as numbers: `Coverage.firstOf` of the file plus the index in `Mutants.statements`. Written by
 * `record-coverage.ts`.
 */
export interface TestCoverage {
  readonly test: string
  readonly seconds: number
  readonly reached: readonly number[]
}
