/** Error for a text that is not JSON or does not match the schema, with Go's message where Go has one. */
export class WireError extends Error {
  override readonly name = 'WireError'
  /** Whether the text is valid JSON, but does not match the schema. False also if only required fields of a request are missing. */
  readonly isJson: boolean

  constructor(message: string, { isJson = false }: { isJson?: boolean } = {}) {
    super(message)
    this.isJson = isJson
  }
}
