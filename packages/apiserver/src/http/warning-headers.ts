/** Warning headers of a response. Upstream: WithWarningRecorder of k8s.io/apiserver, and NewWarningHeader of apimachinery, v0.36. */

/** Maximum total length of all texts in characters. */
const maxTotal = 4096
/** Number of characters to which each text is truncated when the total length exceeds the maximum. */
const maxEach = 256

/**
 * Returns the values of `Warning` headers, each non-empty text once. When the total length exceeds the maximum, every text is truncated.
 * Texts after the one that exceeded the maximum are dropped once the truncated texts reach the maximum.
 */
export function warningHeaders(texts: readonly string[]): string[] {
  const uniqueTexts = [...new Set(texts)].filter((text) => text !== '').map((text) => Array.from(text))
  let total = 0
  const exceedingIndex = uniqueTexts.findIndex((text) => (total += text.length) > maxTotal)
  if (exceedingIndex < 0) return uniqueTexts.map(headerOf)
  const headers: string[] = []
  let length = 0
  for (const [index, text] of uniqueTexts.entries()) {
    // Upstream keeps all texts up to and including the text with which the total length exceeds the maximum.
    if (index > exceedingIndex && length >= maxTotal) break
    const shortened = text.slice(0, maxEach)
    length += shortened.length
    headers.push(headerOf(shortened))
  }
  return headers
}

/** Encodes a text as UTF-8 bytes in a Latin-1 string, because Node writes headers as Latin-1. */
function headerOf(text: readonly string[]): string {
  const quoted = JSON.stringify(text.join('')).replaceAll('\x7f', '\\u007f')
  return `299 - ${Buffer.from(quoted, 'utf8').toString('latin1')}`
}
