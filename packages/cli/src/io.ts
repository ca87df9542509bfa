/** I/O of a command: created by the entry points `main.ts` and `envtest/main.ts`, and replaced in tests. */
export interface Io {
  /** Prints a line of the result to stdout. */
  out(line: string): void
  /** Prints a line about progress or an error to stderr. */
  err(line: string): void
  /** The terminal that stdout writes to; undefined if stdout is not a terminal, or is a terminal that cannot move its cursor. */
  readonly terminal: Terminal | undefined
  readonly pid: number
  /** Working directory, which contains the default data folder. */
  readonly cwd: string
  readonly env: { readonly [name: string]: string | undefined }
  /**
   * Aborts with the reason `Interrupted` on the first SIGINT, SIGTERM or SIGHUP, and when the reader of stdout closes its pipe. Until a
   * command reads this property, the signals end the process.
   */
  readonly signal: AbortSignal
}

export interface Terminal {
  readonly columns: number
  readonly rows: number
  readonly colors: boolean
  write(text: string): void
}

/** Error for invalid usage: printed with its hint, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly hint: string | undefined

  constructor(message: string, hint?: string, options?: ErrorOptions) {
    super(message, options)
    this.hint = hint
  }
}

/** Abort reason of `Io.signal` for an interrupted command. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'

  /** @param by name of the signal, or another cause */
  constructor(by: string) {
    super(`interrupted by ${by}`)
  }
}

/** Exit codes, a stable interface: 0 done, 1 failed, 2 wrong usage, 130 interrupted. */
export const ExitCodes = { done: 0, failed: 1, usage: 2, interrupted: 130 } as const

/** Resolves when `signal` aborts. */
export const untilInterrupted = ({ signal }: Pick<Io, 'signal'>): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
