import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'

/** A suite of `npm run interop`. */
export interface Suite {
  /** The verified behavior, in a line. */
  readonly shows: string
  /** Whether CI is to fail when it does not run. */
  readonly ci: boolean
  /** Programs that it needs, by their names in scripts/tools: built before it starts, once per machine. */
  readonly tools: readonly string[]
  /** Minutes after which it is ended; 15 when absent. */
  readonly minutes?: number
  /** It starts programs that listen on every address: where the machine allows it, it runs in a network with nothing but loopback. */
  readonly ownNetwork?: true
  /** What it must have from elsewhere, before it starts. */
  prepare?(): Promise<void>
  run(options?: SuiteOptions): Promise<Outcome>
}

/** Flags of the command that a suite may have a use for. */
export interface SuiteOptions {
  /** `--all`: everything, where CI runs a part. */
  readonly all?: boolean
  /** `--only TEXT[,TEXT]`: the cases whose names contain one of the texts. */
  readonly only?: string
  /** `--real`: on a real API server as well. */
  readonly real?: boolean
}

/** Those of `names` that contain one of the texts of `--only`. */
export const namesWith = (names: readonly string[], only: string): string[] =>
  names.filter((name) => only.split(',').some((part) => name.includes(part)))

/** About one of `parts` parts of the names, chosen by the commit: CI covers all of them over several commits. */
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
}

/** Why a suite cannot run on this machine. Thrown by it. */
export class CannotRun extends Error {
  override readonly name = 'CannotRun'
}
