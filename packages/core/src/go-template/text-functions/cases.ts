/**
 * Sprig's functions on the case of letters. Upstream: huandu/xstrings v1.5, convert.go; Masterminds/goutils, wordutils.go; Go's package
 * strings.
 */
import type { TemplateFunction } from '../value.ts'
import { goFunction } from '../value.ts'

const Gap = String.raw`[\-_\p{White_Space}]`
/** Ideographs that upstream does not count as letters. */
const Ideographs = String.raw`\u3400-\u4D85\u4E00-\u9FCC\u{20000}-\u{2B81D}`
/** Small letters, and letters without case. */
const Small = String.raw`[\p{L}--[${Ideographs}\p{Lu}]]`

/**
 * The last capital before small letters begins a word (`HTTPServer` is `HTTP` and `Server`). Small letters after digits belong to the
 * digits (`20x`).
 */
const Words = [
  String.raw`\p{N}[\p{N}${Small}]*`,
  String.raw`\p{Lu}${Small}+`,
  String.raw`\p{Lu}+(?!${Small})`,
  `${Small}+`,
  String.raw`[^\-_\p{White_Space}\p{P}\p{N}\p{Lu}${Small}]+`,
]

/** Gaps, punctuation, numbers without letters, and words. */
const Part = new RegExp(String.raw`(?<gap>${Gap}+)|\p{P}+|(?<number>\p{N}+(?!${Small}|\p{N}))|(?<word>${Words.join('|')})`, 'gv')

/** Converts capitals to small letters and separates words by `connector`. A number without letters belongs to the word before it. */
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

/** Joins words, each of which begins with a capital. Of several connectors between two words only the last one is removed. */
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
 * Makes the first letter of a word a capital. If it is one already, makes the capitals that directly follow it small: `httpServer` becomes
 * `HttpServer`, but `HTTPServer` becomes `Httpserver`.
 */
function pascalWord(word: string): string {
  const [first = ''] = word
  const rest = word.slice(first.length)
  return (
    upperLetter(first) +
    (/\p{Lu}/u.test(first) ? rest.replace(/^\p{Lu}+/u, (capitals) => Array.from(capitals, lowerLetter).join('')) : rest)
  )
}

// Letters are mapped one by one, as in Go: JavaScript's mapping of a text can change their number (`ß`) and depends on the position (`Σ`).

const lowerLetter = (letter: string): string => Array.from(letter.toLowerCase())[0]!

function upperLetter(letter: string): string {
  const [upper = '', ...more] = letter.toUpperCase()
  return more.length === 0 ? upper : letter
}

/** Returns the letter for the start of a word, which differs from the capital for digraphs (`ǆ`) and in Georgian. */
function titleLetter(letter: string): string {
  if (/[\u10d0-\u10fa\u10fd-\u10ff]/.test(letter)) return letter
  return ['ǅǄǆ', 'ǈǇǉ', 'ǋǊǌ', 'ǲǱǳ'].find((forms) => forms.includes(letter))?.[0] ?? upperLetter(letter)
}

const swapCase = (value: string): string =>
  value.replace(
    /(?<start>(?<=^|\p{White_Space})\p{Ll})|(?<small>\p{Ll})|[\p{Lu}\p{Lt}]/gu,
    (letter, start?: string, small?: string) => {
      if (start !== undefined) return titleLetter(letter)
      return small === undefined ? lowerLetter(letter) : upperLetter(letter)
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
