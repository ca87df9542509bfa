/** Reads a body up to a limit. */

/** Error for a body over its size limit. */
export class TooLong extends Error {
  override readonly name = 'TooLong'
}

/** Error for a body that exceeds the memory budget which all bodies share. */
export class BudgetExceeded extends Error {
  override readonly name = 'BudgetExceeded'
}

/**
 * Returns the bytes of a body.
 *
 * @param fitsBudget called with the length of each chunk; returns whether it fits the budget
 * @throws TooLong after more than `maxBytes`, BudgetExceeded if a chunk does not fit the budget
 */
export async function readBytes(
  body: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
  fitsBudget: (bytes: number) => boolean = () => true,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new TooLong(`body is longer than ${maxBytes} bytes`)
    if (!fitsBudget(chunk.byteLength)) throw new BudgetExceeded('the bodies in progress exceed the memory budget')
    chunks.push(chunk)
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}
