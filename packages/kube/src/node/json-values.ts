/**
 * Splits a stream of bytes into JSON objects without decoding them. Objects may be pretty-printed, with or without white space between
 * them. Yields all complete objects of a chunk at once; an unfinished last object is dropped at the end of the stream. Upstream:
 * apimachinery's json.Framer, which also splits by value and not by line.
 *
 * @throws SyntaxError when a value is not an object
 * @throws RangeError when an object is longer than `maxBytes`
 */
export async function* readJSONObjects(stream: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer[]> {
  const scanner = new ObjectScanner()
  let pending: Buffer[] = []
  let pendingBytes = 0
  for await (const chunk of stream) {
    const objects: Buffer[] = []
    for (let at = scanner.begin(chunk, 0); at < chunk.length; at = scanner.begin(chunk, at)) {
      const end = scanner.end(chunk, at)
      pendingBytes += (end ?? chunk.length) - at
      if (pendingBytes > maxBytes) throw new RangeError(`a JSON object is longer than ${maxBytes} bytes`)
      const part = chunk.subarray(at, end)
      if (end === undefined) {
        pending.push(part)
        break
      }
      objects.push(pending.length === 0 ? part : Buffer.concat([...pending, part]))
      pending = []
      pendingBytes = 0
      at = end
    }
    if (objects.length > 0) yield objects
  }
}

const Quote = 0x22
const Backslash = 0x5c
const OpenBrace = 0x7b
const CloseBrace = 0x7d
const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** Tracks the nesting depth of braces across chunks. Brackets are not counted: they do not affect where an object ends. */
class ObjectScanner {
  #depth = 0
  #inString = false
  #escaped = false

  /** Returns the index at which the current object continues or the next object begins; the length of the chunk if no object begins. */
  begin(chunk: Buffer, from: number): number {
    if (this.#depth > 0) return from
    let at = from
    while (at < chunk.length && isSpace(chunk[at]!)) at++
    if (at < chunk.length && chunk[at] !== OpenBrace)
      throw new SyntaxError(`expected a JSON object, got ${JSON.stringify(chunk.toString('utf8', at, at + 20))}`)
    return at
  }

  /** Returns the index after the end of the object that continues or begins at `from`; `undefined` when it does not end in this chunk. */
  end(chunk: Buffer, from: number): number | undefined {
    let at = from
    while (at < chunk.length) {
      if (this.#inString) {
        at = this.#endOfString(chunk, at)
        continue
      }
      const byte = chunk[at++]!
      if (byte === Quote) this.#inString = true
      else if (byte === OpenBrace) this.#depth++
      else if (byte === CloseBrace && --this.#depth === 0) return at
    }
    return undefined
  }

  /** Returns the index after the closing quote, or the length of the chunk. */
  #endOfString(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (this.#escaped) this.#escaped = false
      else if (byte === Backslash) this.#escaped = true
      else if (byte === Quote) {
        this.#inString = false
        return at + 1
      }
    }
    return chunk.length
  }
}
