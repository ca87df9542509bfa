/** Splits a template of Go's text/template into tokens: the text outside actions, and the words and symbols inside actions. */

export type TokenKind =
  | 'text'
  | 'open'
  | 'close'
  | 'space'
  | 'pipe'
  | 'declare'
  | 'assign'
  | 'comma'
  | 'leftParen'
  | 'rightParen'
  | 'dot'
  | 'field'
  | 'variable'
  | 'identifier'
  | 'keyword'
  | 'bool'
  | 'nil'
  | 'number'
  | 'char'
  | 'string'
  | 'rawString'
  | 'symbol'
  | 'error'
  | 'end'

export interface Token {
  readonly kind: TokenKind
  /** Source text, or an error message. */
  readonly text: string
  /** Position in the source, in UTF-16 units. */
  readonly pos: number
}

const Keywords = new Set(['block', 'break', 'continue', 'define', 'else', 'end', 'if', 'range', 'template', 'with'])

/** Returns all tokens of `source`. The last one is `end` or `error`. */
export function tokens(source: string): Token[] {
  const tokenList: Token[] = []
  let pos = 0
  let trimNext = false

  while (pos < source.length) {
    const open = source.indexOf('{{', pos)
    const textEnd = open < 0 ? source.length : open
    const trimLeft = open >= 0 && source[open + 2] === '-' && isSpace(source[open + 3])
    let content = source.slice(pos, textEnd)
    let start = pos
    if (trimNext) {
      start += content.length - content.replace(LeadingSpace, '').length
      content = content.replace(LeadingSpace, '')
    }
    if (trimLeft) content = content.replace(TrailingSpace, '')
    if (content !== '') tokenList.push({ kind: 'text', text: content, pos: start })
    trimNext = false
    if (open < 0) break

    const contentStart = open + 2 + (trimLeft ? 2 : 0)
    if (source.startsWith('/*', contentStart)) {
      const close = source.indexOf('*/', contentStart + 2)
      if (close < 0) return [...tokenList, { kind: 'error', text: 'unclosed comment', pos: open }]
      const end = closeAt(source, close + 2)
      if (!end) return [...tokenList, { kind: 'error', text: 'comment ends before closing delimiter', pos: open }]
      trimNext = end.trims
      pos = end.after
      continue
    }
    tokenList.push({ kind: 'open', text: '{{', pos: open })
    const action = actionTokens(source, contentStart, tokenList)
    if (!action) return tokenList
    trimNext = action.trims
    pos = action.after
  }
  tokenList.push({ kind: 'end', text: '', pos: source.length })
  return tokenList
}

const LeadingSpace = /^[ \t\r\n]+/
const TrailingSpace = /[ \t\r\n]+$/
const isSpace = (char: string | undefined): boolean => char === ' ' || char === '\t' || char === '\r' || char === '\n'
const isWord = (char: string | undefined): boolean => char !== undefined && /[\p{L}\p{Nd}_]/u.test(char)

/**
 * Returns the position after the closing delimiter at `pos`, and whether the delimiter trims the following text. Without a closing delimiter
 * at `pos`, returns `undefined`.
 */
function closeAt(source: string, pos: number): { trims: boolean; after: number } | undefined {
  if (isSpace(source[pos]) && source.startsWith('-}}', pos + 1)) return { trims: true, after: pos + 4 }
  return source.startsWith('}}', pos) ? { trims: false, after: pos + 2 } : undefined
}

/**
 * Adds the tokens of one action to `tokenList`. Returns the position after the action, and whether its closing delimiter trims the following
 * text. After an error, returns `undefined`, and the last token has the kind `error`.
 */
function actionTokens(source: string, from: number, tokenList: Token[]): { trims: boolean; after: number } | undefined {
  let pos = from
  let parens = 0
  const add = (kind: TokenKind, end: number): void => {
    tokenList.push({ kind, text: source.slice(pos, end), pos })
    pos = end
  }
  const fail = (message: string, at = pos): undefined => {
    tokenList.push({ kind: 'error', text: message, pos: at })
  }
  /** Whether a word can end at this position: before the end of the source, a space, punctuation or the closing delimiter. */
  const endsWord = (end: number): boolean => {
    const char = source[end]
    return char === undefined || isSpace(char) || '.,|:()'.includes(char) || closeAt(source, end) !== undefined
  }
  const badCharacter = (end: number) => fail(`bad character ${runeText(source, end)}`)

  for (;;) {
    const close = closeAt(source, pos)
    if (close) {
      if (parens > 0) return fail('unclosed left paren')
      tokenList.push({ kind: 'close', text: '}}', pos })
      return close
    }
    const char = source[pos]
    if (char === undefined) return fail('unclosed action')
    if (isSpace(char)) {
      let end = pos + 1
      // The space before `-}}` belongs to the delimiter.
      while (isSpace(source[end]) && !closeAt(source, end)) end++
      add('space', end)
    } else if (char === '=') add('assign', pos + 1)
    else if (char === ':') {
      if (source[pos + 1] !== '=') return fail('expected :=')
      add('declare', pos + 2)
    } else if (char === '|') add('pipe', pos + 1)
    else if (char === ',') add('comma', pos + 1)
    else if (char === '"' || char === "'") {
      const end = quotedEnd(source, pos)
      if (end === undefined) return fail(char === '"' ? 'unterminated quoted string' : 'unterminated character constant')
      add(char === '"' ? 'string' : 'char', end)
    } else if (char === '`') {
      const end = source.indexOf('`', pos + 1)
      if (end < 0) return fail('unterminated raw quoted string')
      add('rawString', end + 1)
    } else if (char === '(') {
      parens++
      add('leftParen', pos + 1)
    } else if (char === ')') {
      if (--parens < 0) return fail('unexpected right paren')
      add('rightParen', pos + 1)
    } else if (char === '$' || (char === '.' && !/[0-9]/.test(source[pos + 1] ?? ''))) {
      const end = wordEnd(source, pos + 1)
      if (!endsWord(end)) return badCharacter(end)
      if (char === '$') add('variable', end)
      else add(end === pos + 1 ? 'dot' : 'field', end)
    } else if (/[0-9+.-]/.test(char)) {
      // A number with more than 256 characters is rejected.
      const number =
        /^[+-]?(?:0[xX][0-9a-fA-F_.]*(?:[pP][+-]?[0-9_]*)?|0[bB][01_]*|0[oO][0-7_]*|[0-9_]*\.?[0-9_]*(?:[eE][+-]?[0-9_]*)?)i?/.exec(
          source.slice(pos, pos + 256),
        )![0]
      if (isWord(source[pos + number.length]))
        return fail(`bad number syntax: ${JSON.stringify(source.slice(pos, pos + number.length + 1))}`)
      add('number', pos + number.length)
    } else if (isWord(char)) {
      const end = wordEnd(source, pos)
      if (!endsWord(end)) return badCharacter(end)
      add(wordKind(source.slice(pos, end)), end)
    } else if (/[!-~]/.test(char)) add('symbol', pos + 1)
    else return fail(`unrecognized character in action: ${runeText(source, pos)}`)
  }
}

function wordKind(word: string): TokenKind {
  if (Keywords.has(word)) return 'keyword'
  if (word === 'true' || word === 'false') return 'bool'
  return word === 'nil' ? 'nil' : 'identifier'
}

function wordEnd(source: string, from: number): number {
  let end = from
  while (isWord(source[end])) end++
  return end
}

function quotedEnd(source: string, from: number): number | undefined {
  const quote = source[from]
  for (let end = from + 1; end < source.length && source[end] !== '\n'; end++) {
    if (source[end] === '\\') end++
    else if (source[end] === quote) return end + 1
  }
  return undefined
}

const runeText = (source: string, pos: number): string => {
  const code = source.codePointAt(pos) ?? 0
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')} '${String.fromCodePoint(code)}'`
}
