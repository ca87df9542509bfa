/** What the end of a shortened text is replaced with. */
const Mark = '... (truncated)'

/**
 * The text when it has at most `longest` characters; otherwise its beginning and a mark, together at most that long. Characters are
 * Unicode code points, as in the limits of schemas: none is cut in two. A surrogate without its partner becomes U+FFFD, as on the wire.
 */
export function shortened(text: string, longest: number, mark = Mark): string {
  if (text.length <= longest) return text.toWellFormed()
  const room = longest - mark.length
  let [units, characters, end] = [0, 0, 0]
  for (const character of text) {
    if (characters === room) end = units
    if (++characters > longest) return text.slice(0, end).toWellFormed() + mark
    units += character.length
  }
  return text.toWellFormed()
}
