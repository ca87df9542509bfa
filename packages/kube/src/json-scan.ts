/**
 * Unlike `JSON.parse`, `scanJSON` reports syntax errors with the messages of Go's decoder (except for characters beyond ASCII, see
 * `quoteChar`), and duplicate keys.
 * Scanning is slow, so request bodies are scanned only after a problem has been detected. `measureJSON` and `countingKeys` count, to
 * enforce limits and to detect duplicate keys.
 */
import { asWork, each, type RemainingWork, type Work } from './clock.ts'

export interface JSONScan {
  /** Message of the syntax error at which the scan stopped; `undefined` for valid JSON. Upstream: encoding/json, SyntaxError. */
  readonly error: string | undefined
  /** Paths of keys that an object has more than once, such as `spec.ports[0].name`. */
  readonly duplicates: readonly string[]
  /** Paths of all keys before the error, if any, in the order of the text. A duplicate key is listed each time it occurs. */
  readonly keys: readonly string[]
}

/** Scans a JSON text; stops at the first syntax error. */
export function scanJSON(text: string): JSONScan {
  const duplicates = new Set<string>()
  const keys: string[] = []
  let at = 0

  const skipSpace = () => {
    while (text[at] === ' ' || text[at] === '\t' || text[at] === '\n' || text[at] === '\r') at++
  }
  const unexpected = (context: string): SyntaxError =>
    new SyntaxError(at >= text.length ? 'unexpected end of JSON input' : `invalid character ${quoteChar(text[at]!)} ${context}`)

  const readString = (): string => {
    const start = at++
    for (; text[at] !== '"'; at++) {
      if (at >= text.length || text[at]! < ' ') throw unexpected('in string literal')
      if (text[at] !== '\\') continue
      at++
      if (text[at] === 'u') {
        for (let i = 0; i < 4; i++) {
          at++
          if (!/[0-9a-fA-F]/.test(text[at] ?? '')) throw unexpected('in \\u hexadecimal character escape')
        }
      } else if (!/["\\/bfnrt]/.test(text[at] ?? '')) throw unexpected('in string escape code')
    }
    at++
    return JSON.parse(text.slice(start, at)) as string
  }
  const readLiteral = (word: string) => {
    for (let i = 0; i < word.length; i++, at++) {
      if (text[at] !== word[i]) throw unexpected(`in literal ${word} (expecting ${quoteChar(word[i]!)})`)
    }
  }
  const readNumber = () => {
    const readDigits = (context: string) => {
      if (!isDigit(text[at])) throw unexpected(context)
      while (isDigit(text[at])) at++
    }
    if (text[at] === '-') at++
    if (text[at] === '0') at++
    else readDigits('in numeric literal')
    if (text[at] === '.') {
      at++
      readDigits('after decimal point in numeric literal')
    }
    if (text[at] === 'e' || text[at] === 'E') {
      at++
      if (text[at] === '+' || text[at] === '-') at++
      readDigits('in exponent of numeric literal')
    }
  }
  const readValue = (path: string) => {
    skipSpace()
    const char = text[at]
    if (char === '{') readObject(path)
    else if (char === '[') readArray(path)
    else if (char === '"') readString()
    else if (char === 't') readLiteral('true')
    else if (char === 'f') readLiteral('false')
    else if (char === 'n') readLiteral('null')
    else if (char === '-' || isDigit(char)) readNumber()
    else throw unexpected('looking for beginning of value')
  }
  const readObject = (path: string) => {
    const seenKeys = new Set<string>()
    at++
    skipSpace()
    if (text[at] === '}') {
      at++
      return
    }
    for (;;) {
      skipSpace()
      if (text[at] !== '"') throw unexpected('looking for beginning of object key string')
      const key = readString()
      const child = path === '' ? key : `${path}.${key}`
      keys.push(child)
      if (seenKeys.has(key)) duplicates.add(child)
      seenKeys.add(key)
      skipSpace()
      if (text[at] !== ':') throw unexpected('after object key')
      at++
      readValue(child)
      skipSpace()
      if (text[at] === '}') break
      if (text[at] !== ',') throw unexpected('after object key:value pair')
      at++
    }
    at++
  }
  const readArray = (path: string) => {
    at++
    skipSpace()
    if (text[at] === ']') {
      at++
      return
    }
    for (let index = 0; ; index++) {
      readValue(`${path}[${index}]`)
      skipSpace()
      if (text[at] === ']') break
      if (text[at] !== ',') throw unexpected('after array element')
      at++
    }
    at++
  }

  try {
    readValue('')
    skipSpace()
    if (at < text.length) throw unexpected('after top-level value')
    return { error: undefined, duplicates: [...duplicates], keys }
  } catch (err) {
    if (!(err instanceof SyntaxError)) throw err
    return { error: err.message, duplicates: [...duplicates], keys }
  }
}

/**
 * Maximum number of objects and lists in a client's document, and in all values together that a JSON patch copies. A document of 3 MB could
 * have a million empty objects, whose garbage collection would block the event loop. Usual objects that fit into etcd have far fewer.
 */
export const MaxObjects = 250_000

/** Counts the keys in a JSON text, counts its objects and lists together (`objects`), and measures its depth, without parsing it. */
export function measureJSON(text: string): { keys: number; objects: number; depth: number } {
  let keys = 0
  let objects = 0
  let depth = 0
  let open = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (inString) {
      if (char === 0x5c) at++
      else if (char === 0x22) inString = false
    } else if (char === 0x22) inString = true
    else if (char === 0x3a) keys++
    else if (char === 0x7b || char === 0x5b) {
      objects++
      depth = Math.max(depth, ++open)
    } else if (char === 0x7d || char === 0x5d) open--
  }
  return { keys, objects, depth }
}

/** Returns work that counts the keys of all objects in a value. */
export function countingKeys(value: unknown): Work<number> {
  let count = 0
  const visit = (part: unknown): RemainingWork => {
    if (typeof part !== 'object' || part === null) return undefined
    if (Array.isArray(part)) return each(part, visit)
    const keys = Object.keys(part)
    count += keys.length
    return each(keys, (key) => visit((part as Readonly<Record<string, unknown>>)[key]))
  }
  return asWork(
    () => visit(value),
    () => count,
  )
}

const isDigit = (char: string | undefined): boolean => char !== undefined && char >= '0' && char <= '9'

/**
 * Quotes a character: as Go does, escapes the single quote, the backslash and control characters. Of a character beyond ASCII, Go quotes only
 * the first byte in UTF-8 (`Ã` for `é`).
 */
function quoteChar(char: string): string {
  if (char === "'") return `'\\''`
  if (char === '"') return `'"'`
  const code = char.charCodeAt(0)
  if (char === '\u0007') return `'\\a'`
  if (char === '\v') return `'\\v'`
  if (/[\b\t\n\f\r]/.test(char)) return `'${JSON.stringify(char).slice(1, -1)}'`
  if (code < 0x20 || code === 0x7f) return `'\\x${code.toString(16).padStart(2, '0')}'`
  if (code > 0x7f && code < 0xa0) return `'\\u00${code.toString(16)}'`
  return `'${JSON.stringify(char).slice(1, -1)}'`
}
