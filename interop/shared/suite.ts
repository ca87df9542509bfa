import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'

/** A suite of `npm run interop`. */
export interface Suite {
  /** The verified behaviour, on one line. */
  readonly shows: string
  /** Whether CI runs the suite. */
  readonly ci: boolean
  /** Programs that the suite needs, by their names in scripts/tools. They are built before it starts, once per machine. */
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
  /** `--all`: runs all cases of suites of which CI runs a part. */
  readonly all?: boolean
  /** `--only TEXT[,TEXT]`: runs the cases whose names contain one of the texts. */
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
   * Names of the failed cases. Only suites whose results depend on timing set it: if at most five cases failed, the suite runs these cases
   * again, without other suites at the same time.
   */
  readonly failedCases?: readonly string[]
}

/** Thrown by a suite that cannot run on this machine, with the reason. */
export class CannotRun extends Error {
  override readonly name = 'CannotRun'
}
