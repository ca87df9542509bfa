/** Error for a damaged file, in which acknowledged data is missing or may be missing. */
export class DamagedData extends Error {
  override readonly name = 'DamagedData'
  readonly path: string

  constructor(path: string, at: number | undefined, why: string) {
    super(`${path} is damaged${at === undefined ? '' : ` at byte ${at}`}: ${why}`)
    this.path = path
  }
}

/** Error for a data folder that cannot be used. The cause is for programs, and omitted when the message already contains it. */
export const unopened = (folder: string, why: string, cause?: unknown): Error =>
  new Error(`Cannot open data folder ${folder}: ${why}`, cause === undefined ? {} : { cause })
