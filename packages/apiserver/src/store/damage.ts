/** A file no longer holds what was written to it, and something that was acknowledged is missing or may be. */
export class DamagedData extends Error {
  override readonly name = 'DamagedData'
  readonly path: string

  constructor(path: string, at: number | undefined, why: string) {
    super(`${path} is damaged${at === undefined ? '' : ` at byte ${at}`}: ${why}`)
    this.path = path
  }
}

/** A data folder cannot be used. The cause is for programs, and left out where it would tell a person nothing more. */
export const unopened = (folder: string, why: string, cause?: unknown): Error =>
  new Error(`Cannot open data folder ${folder}: ${why}`, cause === undefined ? {} : { cause })
