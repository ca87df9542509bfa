/** What a client is told beside its answer. Upstream: WithWarningRecorder of k8s.io/apiserver, and NewWarningHeader of apimachinery, v0.36. */

/** In characters, of all texts together. */
const most = 4096
/** What is left of each text once there is more than that. */
const part = 256

/** Values of `Warning` headers: each text once, and of very much no more than the beginnings. */
export function warningHeaders(texts: readonly string[]): string[] {
  const all = [...new Set(texts)].filter((text) => text !== '').map((text) => Array.from(text))
  let total = 0
  const tooMuch = all.findIndex((text) => (total += text.length) > most)
  if (tooMuch < 0) return all.map(headerOf)
  const shown: string[] = []
  let length = 0
  for (const [index, text] of all.entries()) {
    // Upstream: those up to the one that was too much are there in any case.
    if (index > tooMuch && length >= most) break
    const shortened = text.slice(0, part)
    length += shortened.length
    shown.push(headerOf(shortened))
  }
  return shown
}

/** A header holds bytes, which Node writes from Latin-1: this is UTF-8 seen as such. */
function headerOf(text: readonly string[]): string {
  const quoted = JSON.stringify(text.join('')).replaceAll('\x7f', '\\u007f')
  return `299 - ${Buffer.from(quoted, 'utf8').toString('latin1')}`
}
