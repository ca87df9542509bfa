/** String operations by code points, because JavaScript strings consist of UTF-16 code units; concatenation of bytes. */
import { EvaluationError } from '../value.ts'

/** Returns the number of code points of a text. */
export function codePoints(text: string): number {
  let count = text.length
  for (let index = 0; index < text.length - 1; index++) {
    const code = text.charCodeAt(index)
    if (code >= 0xd800 && code < 0xdc00) {
      const next = text.charCodeAt(index + 1)
      if (next >= 0xdc00 && next < 0xe000) {
        count--
        index++
      }
    }
  }
  return count
}

/** Reports whether every character is one UTF-16 code unit, so that indexes of characters and of code units are equal. */
export const isPlainText = (text: string): boolean => codePoints(text) === text.length

export function concatBytes(a: Uint8Array, b: Uint8Array): Uint8Array {
  const joined = new Uint8Array(a.length + b.length)
  joined.set(a)
  joined.set(b, a.length)
  return joined
}

/**
 * Returns the characters from index `start` up to, not including, index `end`, which defaults to the end of the text.
 * @throws EvaluationError when an index is out of range, or `start` is greater than `end`
 */
export function substring(text: string, start: bigint, end?: bigint): string {
  const letters = isPlainText(text) ? undefined : Array.from(text)
  const length = letters?.length ?? text.length
  const to = end === undefined ? length : Number(end)
  if (start < 0n || Number(start) > length) throw new EvaluationError(`index out of range: ${start}`)
  if (to < 0 || to > length) throw new EvaluationError(`index out of range: ${to}`)
  if (Number(start) > to) throw new EvaluationError(`invalid substring range. start: ${start}, end: ${to}`)
  return letters ? letters.slice(Number(start), to).join('') : text.slice(Number(start), to)
}
