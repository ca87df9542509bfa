/** Splits the text of a CEL expression into tokens. Upstream: the grammar of cel-go. */
import { appendAll } from '../lists.ts'
import type { Issue, Node } from './syntax.ts'

/** Value of a literal. */
export type Literal = Extract<Node, { kind: 'literal' }>['value']

/** A token, with its position in the source in UTF-16 code units. A `quoted` token is a name in backticks; the last token is `end`. */
export type Token = { readonly at: number; readonly text: string } & (
  | { readonly kind: 'name' | 'quoted' | 'operator' | 'end' }
  | { readonly kind: 'literal'; readonly value: Literal }
)

/** Syntax error that the lexer or the parser throws. `parse` converts it to a CompileError. */
export class SyntaxProblem extends Error implements Issue {
  readonly at: number
  constructor(at: number, message: string) {
    super(message)
    this.at = at
  }
}

const Space = /(?:[\t\n\f\r ]|\/\/[^\n]*)+/y
const Name = /[A-Za-z_][A-Za-z0-9_]*/y
const Quoted = /`[A-Za-z0-9_./ -]+`/y
const Float = /(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)/y
const Integer = /(0x[0-9a-fA-F]+|\d+)([uU]?)/y
const Text =
  /([bB]?[rR]?|[rR][bB])("""(?:[^\\]|\\[^])*?"""|'''(?:[^\\]|\\[^])*?'''|"(?:[^"\\\n\r]|\\[^])*"|'(?:[^'\\\n\r]|\\[^])*')/y
const RawText = /([bB]?[rR]|[rR][bB])("""[^]*?"""|'''[^]*?'''|"[^"\n\r]*"|'[^'\n\r]*')/y
const Operator = /==|!=|<=|>=|&&|\|\||[<>[\]{}().,\-!?:+*/%]/y

/** Returns the tokens of an expression. @throws SyntaxProblem */
export function tokens(source: string): Token[] {
  const result: Token[] = []
  let at = 0
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const match = pattern.exec(source)
    return match && match[0] !== '' ? match : null
  }
  while (at < source.length) {
    const space = take(Space)
    if (space) {
      at += space[0].length
      continue
    }
    let match: RegExpExecArray | null
    let token: Token
    if ((match = take(RawText))) {
      token = { kind: 'literal', at, text: match[0], value: textOf(match[1]!, match[2]!, at) }
    } else if ((match = take(Text))) {
      token = { kind: 'literal', at, text: match[0], value: textOf(match[1]!, match[2]!, at) }
    } else if ((match = take(Name))) token = wordOf(match[0], at)
    else if ((match = take(Quoted))) token = { kind: 'quoted', at, text: match[0] }
    else if ((match = take(Float))) token = { kind: 'literal', at, text: match[0], value: Number(match[0]) }
    else if ((match = take(Integer))) token = integerOf(match, at)
    else if ((match = take(Operator))) token = { kind: 'operator', at, text: match[0] }
    else throw new SyntaxProblem(at, `Syntax error: token recognition error at: '${source.slice(at, at + 1)}'`)
    result.push(token)
    at += match[0].length
  }
  result.push({ kind: 'end', at, text: '<EOF>' })
  return result
}

function wordOf(text: string, at: number): Token {
  if (text === 'true' || text === 'false') return { kind: 'literal', at, text, value: text === 'true' }
  if (text === 'null') return { kind: 'literal', at, text, value: null }
  return text === 'in' ? { kind: 'operator', at, text } : { kind: 'name', at, text }
}

/** Returns the token of an integer. The parser checks the limits of signed integers, because it knows the sign. */
function integerOf([text, digits, suffix]: RegExpExecArray, at: number): Token {
  const value = BigInt(digits!)
  if (suffix === '') return { kind: 'literal', at, text, value }
  if (value >= 2n ** 64n) throw new SyntaxProblem(at, 'invalid uint literal')
  return { kind: 'literal', at, text, value: { uint: value } }
}

function textOf(prefix: string, quoted: string, at: number): string | Uint8Array {
  const quotes = quoted.startsWith('"""') || quoted.startsWith("'''") ? 3 : 1
  const inner = quoted.slice(quotes, -quotes).replaceAll(/\r\n?/g, '\n')
  const bytes = /b/i.test(prefix)
  if (/r/i.test(prefix)) return bytes ? new TextEncoder().encode(inner) : inner
  return bytes ? unescapeBytes(inner, at) : unescape(inner, at)
}

const Escape = /\\(?:([abfnrtv\\'"`?])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([^]))/g
const Simple: { readonly [letter: string]: string } = { a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

function unescape(text: string, at: number): string {
  return text.replaceAll(Escape, (_all, simple?: string, hex?: string, u4?: string, u8?: string, octal?: string) => {
    if (simple !== undefined) return Simple[simple] ?? simple
    const code = octal !== undefined ? Number.parseInt(octal, 8) : Number.parseInt(hex ?? u4 ?? u8 ?? '', 16)
    if (Number.isNaN(code) || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      throw new SyntaxProblem(at, 'unable to unescape string')
    }
    return String.fromCodePoint(code)
  })
}

/** Decodes the escapes of a bytes literal, in which `\x` and octal escapes are bytes, not characters. */
function unescapeBytes(text: string, at: number): Uint8Array {
  const bytes: number[] = []
  const encoder = new TextEncoder()
  let last = 0
  for (const match of text.matchAll(Escape)) {
    appendAll(bytes, encoder.encode(text.slice(last, match.index)))
    const [escape, simple, hex, , , octal] = match
    if (hex !== undefined) bytes.push(Number.parseInt(hex, 16))
    else if (octal !== undefined) bytes.push(Number.parseInt(octal, 8))
    else if (simple !== undefined) appendAll(bytes, encoder.encode(Simple[simple] ?? simple))
    else throw new SyntaxProblem(at, 'unable to unescape string')
    last = match.index + escape.length
  }
  appendAll(bytes, encoder.encode(text.slice(last)))
  return Uint8Array.from(bytes)
}
