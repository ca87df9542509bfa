/** Sprig's functions that fit texts to a width in bytes. Upstream: Masterminds/goutils, stringutils.go and wordutils.go. */
import { checkSize } from '../format.ts'
import type { TemplateFunction } from '../value.ts'
import { byteLength, byteSlice, goFunction } from '../value.ts'

export const wrappingFunctions: Readonly<Record<string, TemplateFunction>> = {
  wrap: goFunction(['int', 'string'], (width, value) =>
    wrap(value, { width: Number(width), separator: '\n', splitsWords: false }),
  ),
  wrapWith: goFunction(['int', 'string', 'string'], (width, separator, value) =>
    wrap(value, { width: Number(width), separator: separator || '\n', splitsWords: true }),
  ),
  abbrev: goFunction(['int', 'string'], (width, value) => abbreviate(value, 0, Number(width))),
  abbrevboth: goFunction(['int', 'int', 'string'], (from, width, value) => abbreviate(value, Number(from), Number(width))),
}

interface Wrapping {
  readonly width: number
  readonly separator: string
  /** Whether words longer than the width are split. Otherwise, the line of such a word is longer. */
  readonly splitsWords: boolean
}

/** Breaks a text at spaces into lines of at most `width` bytes, unless a word is longer and is not split. A width below 1 means 1. */
function wrap(value: string, { width, separator, splitsWords }: Wrapping): string {
  const longest = Math.max(width, 1)
  const lines: string[] = []
  // One character for each byte.
  let rest = Buffer.from(value).toString('latin1')
  while (rest.length > longest) {
    const start = /[^ ]/.exec(rest)?.index ?? rest.length
    // Spaces at the start of a line are removed only until the rest fits on the line.
    rest = rest.slice(Math.min(start, rest.length - longest))
    if (rest.length === longest) break
    const space = rest.lastIndexOf(' ', longest)
    const end = space >= 0 ? space : splitsWords ? longest : rest.indexOf(' ', longest)
    if (end < 0) break
    lines.push(rest.slice(0, end))
    rest = rest.slice(rest[end] === ' ' ? end + 1 : end)
  }
  checkSize(lines.length * byteLength(separator))
  const bytes = Buffer.from(separator).toString('latin1')
  return Buffer.from([...lines, rest].join(bytes), 'latin1').toString()
}

const Ellipsis = '...'

/**
 * Shortens a text to `width` bytes, including the ellipses that replace an omitted start and an omitted end. The shown part begins at byte
 * `from`, or earlier if fewer than `width - 3` bytes remain there. A start of four bytes or less is not omitted. Returns the text unchanged
 * if `width` is too small for the ellipses.
 */
function abbreviate(value: string, from: number, width: number): string {
  const length = byteLength(value)
  if (width < (from > 0 ? 7 : 4) || length <= width) return value
  const shown = width - Ellipsis.length
  const start = Math.min(from, length - shown)
  if (start <= 4) return byteSlice(value, 0, shown) + Ellipsis
  if (start + shown >= length) return Ellipsis + byteSlice(value, length - shown)
  return Ellipsis + byteSlice(value, start, start + shown - Ellipsis.length) + Ellipsis
}
