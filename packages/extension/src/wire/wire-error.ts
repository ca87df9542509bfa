/** The text is not what the schema says. The message is Go's, as far as Go has one. */
export class WireError extends Error {
  override readonly name = 'WireError'
  /** The text is JSON, but not of the shape that was expected. */
  readonly isJson: boolean

  constructor(message: string, { isJson = false }: { isJson?: boolean } = {}) {
    super(message)
    this.isJson = isJson
  }
}
