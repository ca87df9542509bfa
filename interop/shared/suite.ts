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
  /** Whether its programs listen on every address. They then run in a network namespace with only loopback, where the machine allows it. */
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
  /** `--real`: repeats some cases on a real API server; with `--only`, all of them. */
  readonly real?: boolean
  /** `--seed N`: runs random cases, which this number determines, instead of the written ones. */
  readonly seed?: number
}

/** Returns the names that contain one of the texts of `--only`. */
export const namesWith = (names: readonly string[], only: string): string[] =>
  names.filter((name) => only.split(',').some((part) => name.includes(part)))

/** Returns about 1/`parts` of the names, chosen by the commit, so that CI runs all of them over several commits. */
export function chosenByCommit(names: readonly string[], parts: number): string[] {
  const { stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' })
  const partOf = (name: string) =>
    createHash('sha256')
      .update(stdout + name)
      .digest()[0]! % parts
  return names.filter((name) => partOf(name) === 0)
}

export interface Outcome {
  readonly passed: number
  readonly failed: number
  /**
   * Names of the failed cases, of a suite whose results depend on timing. If few cases failed, the suite runs again with `--only`
   * and these names, without other suites.
   */
  readonly failedCases?: readonly string[]
}

/** Thrown by a suite that cannot run on this machine, with the reason. */
export class CannotRun extends Error {
  override readonly name = 'CannotRun'
}
