/**
 * Terminal in memory that renders the written text. Supports only the control sequences that `createStory` uses; throws on others.
 */
import { appendAll } from '@capstan/kube'
import type { Terminal } from '../io.ts'

export interface FakeTerminal extends Terminal {
  columns: number
  rows: number
  /** Makes the window narrower, which wraps existing lines. The cursor must be on an empty last line. */
  narrow(columns: number): void
  /** Returns the text on the screen and the text that was scrolled off, without colours. */
  text(): string
  /** Returns all written text, with control sequences. */
  raw(): string
}

/** Matches an escape sequence or one character. */
const sequenceOrCharacter = new RegExp(`${String.fromCharCode(27)}\\[([\\d;]*)([A-Za-z])|[^]`, 'gu')

export function fakeTerminal({ columns = 80, rows = 24, colors = false } = {}): FakeTerminal {
  const lines: string[] = ['']
  let row = 0
  let column = 0
  let raw = ''

  const put = (character: string, width: number) => {
    if (column === width) newLine()
    lines[row] = (lines[row] ?? '').slice(0, column).padEnd(column) + character + (lines[row] ?? '').slice(column + 1)
    column++
  }
  const newLine = () => {
    row++
    column = 0
    lines[row] ??= ''
  }
  return {
    columns,
    rows,
    colors,
    write(text) {
      raw += text
      for (const [match, count, command] of text.matchAll(sequenceOrCharacter)) {
        if (command === 'A') row = Math.max(0, row - Number(count))
        else if (command === 'J') {
          lines[row] = (lines[row] ?? '').slice(0, column)
          lines.length = row + 1
        } else if (command === 'm') continue
        else if (command !== undefined || match < ' ') {
          if (match !== '\n') throw new Error(`Unsupported control sequence ${JSON.stringify(match)}`)
          newLine()
        } else put(match, this.columns)
      }
    },
    narrow(columns) {
      const wrapped = lines.flatMap((line) => line.match(new RegExp(`.{1,${columns}}`, 'g')) ?? [''])
      lines.length = 0
      appendAll(lines, wrapped)
      row = lines.length - 1
      this.columns = columns
    },
    text: () => lines.join('\n').trimEnd(),
    raw: () => raw,
  }
}
