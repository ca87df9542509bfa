/** Joins distinct error texts in Go's form `[a, b]`. A single text is returned as it is. */
export function aggregateText(texts: readonly string[]): string {
  const unique = [...new Set(texts)]
  return unique.length === 1 ? unique[0]! : `[${unique.join(', ')}]`
}
