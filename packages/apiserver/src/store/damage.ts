/** Error for a file or folder (`path`) that is damaged or missing, so that acknowledged data may be lost. `offset`: position in bytes. */
export class DamagedData extends Error {
  override readonly name = 'DamagedData'
  readonly path: string

  constructor(path: string, offset: number | undefined, problem: string) {
    super(`${path} is damaged${offset === undefined ? '' : ` at byte ${offset}`}: ${problem}`)
    this.path = path
  }
}

/** Error for a data folder that cannot be opened. `problem` contains the text of `cause`, if there is one. */
export const unusableFolder = (folder: string, problem: string, cause?: unknown): Error =>
  new Error(`Cannot open data folder ${folder}: ${problem}`, cause === undefined ? {} : { cause })
