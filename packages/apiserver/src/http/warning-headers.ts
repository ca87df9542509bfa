/** Warning headers of a response. Upstream: WithWarningRecorder of k8s.io/apiserver, and NewWarningHeader of apimachinery, v0.36. */

/** Maximum characters of all texts together. */
const maxTotal = 4096
/** Characters that each text is truncated to when the maximum is exceeded. */
const maxEach = 256

/** Values of `Warning` headers: each text once, truncated when they are too long together. */
export function warningHeaders(texts: readonly string[]): string[] {
  const all = [...new Set(texts)].filter((text) => text !== '').map((text) => Array.from(text))
  let total = 0
  const tooMuch = all.findIndex((text) => (total += text.length) > maxTotal)
  if (tooMuch < 0) return all.map(headerOf)
  const headers: string[] = []
  let length = 0
  for (const [index, text] of all.entries()) {
    // Upstream keeps all texts up to the one that exceeded the maximum.
    if (index > tooMuch && length >= maxTotal) break
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
