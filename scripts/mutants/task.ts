/** Types of files through which `scripts/mutants.ts` and its test process (`run-tests.ts`) communicate. */
import type { Mutant } from './operators.ts'

/** A mutant of one file, and the test files to run with it, in order. */
export interface MutantTask extends Pick<Mutant, 'start' | 'end' | 'replacement'> {
  readonly id: string
  readonly file: string
  readonly tests: readonly string[]
}

export type Task =
  /** Records in `folder` which statements of `files` each test file of `tests` reaches. An empty `tests` means all test files of `npm test`. */
  | { readonly kind: 'coverage'; readonly files: readonly string[]; readonly tests: readonly string[]; readonly folder: string }
  /** Runs the tests of each mutant, and appends lines of type `Result` to the file `results`. */
  | { readonly kind: 'mutants'; readonly mutants: readonly MutantTask[]; readonly results: string }

/**
 * One line of `results`. A mutant whose last line is `started` when the process ends counts as killed: it ended the process or exceeded the
 * time limit.
 */
export type Result =
  | { readonly id: string; readonly state: 'started' }
  | { readonly id: string; readonly state: 'survived'; readonly seconds: number }
  | { readonly id: string; readonly state: 'killed'; readonly seconds: number; readonly by: string }

/** The statements that one test file reaches. Written by `record-coverage.ts`. */
export interface TestCoverage {
  /** Path of the test file in the checkout. */
  readonly test: string
  readonly seconds: number
  /** Numbers of the statements. The statements of all files are numbered consecutively, those of one file in the order of `Mutants.statements`. */
  readonly reached: readonly number[]
}
