import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'

/** A suite of `npm run interop`. */
export interface Suite {
  /** The verified behaviour, on one line. */
  readonly shows: string
  /** Whether CI runs the suite. */
  readonly ci: boolean
  /** Programs that the suite needs, by their names in scripts/tools. Missing ones are built before the suite starts. */
  readonly tools: readonly string[]
  /** Time limit in minutes; default 15. */
  readonly minutes?: number
  /**
   * Whether programs of the suite listen on every address. Such a suite runs in a network namespace that has only loopback, if the machine
   * allows this.
   */
  readonly ownNetwork?: true
  /** Downloads or builds what the suite needs in addition to `tools`, before it starts. */
  prepare?(): Promise<void>
  run(options?: SuiteOptions): Promise<Outcome>
}

/** Flags of `npm run interop` that a suite can use. */
export interface SuiteOptions {
  /** `--all`: runs a suite in full of which CI runs a part. */
  readonly all?: boolean
  /** `--only TEXT[,TEXT]`: runs the cases, or the test files, whose names contain one of the texts. The suite `conform` accepts one text. */
  readonly only?: string
  /** `--real`: repeats a part of the cases on a real API server; with `--only`, all chosen cases. */
  readonly real?: boolean
  /** `--seed N`: runs random cases, which this number determines, instead of the written ones. */
  readonly seed?: number
}

/** Returns the names that contain one of the texts of `--only`. */
export const namesWith = (names: readonly string[], only: string): string[] =>
  names.filter((name) => only.split(',').some((part) => name.includes(part)))

/** Returns about 1/`parts` of the names, chosen by a hash of commit and name, so that CI runs a different part for each commit. */
export function chosenByCommit(names: readonly string[], parts: number): string[] {
  const { stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' })
  const partOf = (name: string) =>
    createHash('sha256')
      .update(stdout + name)
      .digest()[0]! % parts
  return names.filter((name) => partOf(name) === 0)
}

/** Numbers of passed and failed checks. */
export interface Outcome {
  readonly passed: number
  readonly failed: number
  /**
   * Names of the failed cases. Only suites whose results depend on timing set it: `npm run interop` runs these cases again, without other
   * suites at the same time, unless more than five cases or more than five suites failed.
   */
  readonly failedCases?: readonly string[]
}

/** Error of a suite or bench that cannot run, for example on this machine, with the reason. */
export class CannotRun extends Error {
  override readonly name = 'CannotRun'
}
