/**
 * Sprig's functions on the case of letters. Upstream: huandu/xstrings v1.5, convert.go; Masterminds/goutils, wordutils.go; Go's package
 * strings.
 */
import type { TemplateFunction } from '../value.ts'
import { goFunction } from '../value.ts'

/** A character that separates words. */
const Gap = String.raw`[\-_\p{White_Space}]`
/** Ideographs that upstream does not count as letters. */
const Ideographs = String.raw`\u3400-\u4D85\u4E00-\u9FCC\u{20000}-\u{2B81D}`
/** All letters except uppercase letters and `Ideographs`. */
const NonUpper = String.raw`[\p{L}--[${Ideographs}\p{Lu}]]`

/**
 * Patterns of words. The last uppercase letter before lowercase letters begins a word (`HTTPServer` is `HTTP` and `Server`). Lowercase
 * letters after digits belong to the digits (`20x`).
 */
const Words = [
  String.raw`\p{N}[\p{N}${NonUpper}]*`,
  String.raw`\p{Lu}${NonUpper}+`,
  String.raw`\p{Lu}+(?!${NonUpper})`,
  `${NonUpper}+`,
  String.raw`[^\-_\p{White_Space}\p{P}\p{N}\p{Lu}${NonUpper}]+`,
]

/** Matches one gap, punctuation, number without letters, or word. */
const Part = new RegExp(
  String.raw`(?<gap>${Gap}+)|\p{P}+|(?<number>\p{N}+(?!${NonUpper}|\p{N}))|(?<word>${Words.join('|')})`,
  'gv',
)

/**
 * Converts uppercase letters to lowercase, and separates words by `connector`, which also replaces each character of a gap. A number without
 * letters belongs to the word before it.
 */
function connected(value: string, connector: string): string {
  let out = ''
  let followsWord = false
  for (const { 0: part, groups: { gap, number, word } = {} } of value.matchAll(Part)) {
    if (word !== undefined && followsWord) out += connector
    out += gap === undefined ? part : connector.repeat(gap.length)
    followsWord = (word ?? number) !== undefined
  }
  return out.replace(/\p{Lu}/gu, lowerLetter)
}

const GapOrWord = new RegExp(`(?<gap>${Gap}+)|[^\\-_\\p{White_Space}]+`, 'gv')

/**
 * Begins each word with an uppercase letter; only gaps separate these words. Of a gap between two words, removes only the last character.
 */
function pascalCase(value: string): string {
  const parts = Array.from(value.matchAll(GapOrWord), ([part, gap]) => ({ part, isGap: gap !== undefined }))
  // Upstream writes the last character of a text without words twice.
  if (parts.length === 1 && parts[0]!.isGap) return value + value.slice(-1)
  return parts
    .map(({ part, isGap }, index) => {
      if (!isGap) return pascalWord(part)
      return index === 0 || index === parts.length - 1 ? part : part.slice(0, -1)
    })
    .join('')
}

/**
 * Converts the first letter of a word to uppercase. If it was uppercase already, converts the uppercase letters that directly follow it to
 * lowercase: `httpServer` becomes `HttpServer`, but `HTTPServer` becomes `Httpserver`.
 */
function pascalWord(word: string): string {
  const [first = ''] = word
  const rest = word.slice(first.length)
  return (
    upperLetter(first) +
    (/\p{Lu}/u.test(first) ? rest.replace(/^\p{Lu}+/u, (letters) => Array.from(letters, lowerLetter).join('')) : rest)
  )
}

// Letters are mapped one by one, as in Go: JavaScript's mapping of a text can change their number (`ß`) and depends on the position (`Σ`).

const lowerLetter = (letter: string): string => Array.from(letter.toLowerCase())[0]!

function upperLetter(letter: string): string {
  const [upper = '', ...more] = letter.toUpperCase()
  return more.length === 0 ? upper : letter
}

/** Returns the title case of a letter, which differs from its uppercase for digraphs (`ǆ`) and Georgian letters. */
function titleLetter(letter: string): string {
  if (/[\u10d0-\u10fa\u10fd-\u10ff]/.test(letter)) return letter
  return ['ǅǄǆ', 'ǈǇǉ', 'ǋǊǌ', 'ǲǱǳ'].find((forms) => forms.includes(letter))?.[0] ?? upperLetter(letter)
}

/** Swaps uppercase and lowercase letters. After white space, and at the start, a lowercase letter becomes title case. */
const swapCase = (value: string): string =>
  value.replace(
    /(?<start>(?<=^|\p{White_Space})\p{Ll})|(?<lower>\p{Ll})|[\p{Lu}\p{Lt}]/gu,
    (letter, start?: string, lower?: string) => {
      if (start !== undefined) return titleLetter(letter)
      return lower === undefined ? lowerLetter(letter) : upperLetter(letter)
    },
  )

export const caseFunctions: Readonly<Record<string, TemplateFunction>> = {
  upper: goFunction(['string'], (value) => Array.from(value, upperLetter).join('')),
  lower: goFunction(['string'], (value) => Array.from(value, lowerLetter).join('')),
  title: goFunction(['string'], (value) => value.replace(/(?<=^|\p{White_Space}|(?!\w)\p{ASCII})./gsu, titleLetter)),
  untitle: goFunction(['string'], (value) => value.replace(/(?<=^|\p{White_Space})\P{White_Space}/gu, lowerLetter)),
  swapcase: goFunction(['string'], swapCase),
  snakecase: goFunction(['string'], (value) => connected(value, '_')),
  kebabcase: goFunction(['string'], (value) => connected(value, '-')),
  camelcase: goFunction(['string'], pascalCase),
}
