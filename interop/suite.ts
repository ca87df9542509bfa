/** What `npm run interop` runs. */
export interface Suite {
  /** What it shows, in a line. */
  readonly shows: string
  /** Whether CI is to fail when it does not run. */
  readonly ci: boolean
  /** Programs that it needs, by their names in scripts/tools: built before it starts, once per machine. */
  readonly tools: readonly string[]
  /** It starts programs that listen on every address: where the machine allows it, it runs in a network with nothing but loopback. */
  readonly ownNetwork?: true
  /** What it must have from elsewhere, before it starts. */
  prepare?(): Promise<void>
  run(): Promise<Outcome>
}

export interface Outcome {
  readonly passed: number
  readonly failed: number
}

/** Why a suite cannot run on this machine. Thrown by it. */
export class CannotRun extends Error {
  override readonly name = 'CannotRun'
}
