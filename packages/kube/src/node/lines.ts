/**
 * Splits a stream of bytes at newlines, without decoding what it splits. Yields all complete lines of a chunk at once; an
 * unfinished last line is given up when the stream ends.
 */
export async function* readLines(stream: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer[]> {
  let pending: Buffer[] = []
  let pendingBytes = 0
  for await (const chunk of stream) {
    const lines: Buffer[] = []
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const tail = chunk.subarray(start, end)
      const line = pending.length === 0 ? tail : Buffer.concat([...pending, tail])
      pending = []
      pendingBytes = 0
      if (line.length > 0) lines.push(line)
      start = end + 1
    }
    if (start < chunk.length) {
      pending.push(chunk.subarray(start))
      pendingBytes += chunk.length - start
      if (pendingBytes > maxBytes) throw new Error(`a line is longer than ${maxBytes} bytes`)
    }
    if (lines.length > 0) yield lines
  }
}
