/** Reads a body up to a limit. */

/** Error for a body over its size limit. */
export class TooLong extends Error {
  override readonly name = 'TooLong'
}

/** Error for a body that does not fit into the memory budget of all bodies in progress. */
export class BudgetExceeded extends Error {
  override readonly name = 'BudgetExceeded'
}

/**
 * Returns the bytes of a body.
 *
 * @param reserve counts the bytes of a chunk towards the memory budget; returns false if the budget is then exceeded. Default: no budget
 * @throws TooLong after more than `maxBytes`, BudgetExceeded if `reserve` returns false
 */
export async function readBytes(
  body: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
  reserve: (bytes: number) => boolean = () => true,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new TooLong(`body is longer than ${maxBytes} bytes`)
    if (!reserve(chunk.byteLength)) throw new BudgetExceeded('the bodies in progress exceed the memory budget')
    chunks.push(chunk)
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}
