/** Default mark at the end of a shortened text. */
const Mark = '... (truncated)'

/**
 * Shortens a text of more than `longest` characters: replaces its end with `mark`, so that the result has `longest` characters. `longest`
 * must not be less than the length of `mark`. Characters are Unicode code points, as in the limits of schemas. In every text, an unpaired
 * surrogate becomes U+FFFD, as when the text is encoded in UTF-8.
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
