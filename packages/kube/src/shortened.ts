/** Replaces the end of a shortened text. */
const Mark = '... (truncated)'

/**
 * Shortens a text to at most `longest` characters, with a mark at its end; returns shorter texts unchanged. Characters are Unicode code
 * points, as in the limits of schemas. An unpaired surrogate becomes U+FFFD, as in UTF-8.
 */
export function shortened(text: string, longest: number, mark = Mark): string {
  if (text.length <= longest) return text.toWellFormed()
  const limit = longest - mark.length
  let [units, characters, end] = [0, 0, 0]
  for (const character of text) {
    if (characters === limit) end = units
    if (++characters > longest) return text.slice(0, end).toWellFormed() + mark
    units += character.length
  }
  return text.toWellFormed()
}
