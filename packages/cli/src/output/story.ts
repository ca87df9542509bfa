/** Shows the story of a plane as it happens: plain lines, one JSON object a line, or on a terminal with one live line per cluster. */
import type { Line } from '@capstan/lab'
import type { Io, Terminal } from '../io.ts'

/** A line with its place in time. */
export interface Told extends Line {
  /** Milliseconds since the start of the program. */
  readonly at: number
}

/** How one cluster stands, for its live line. */
export interface ClusterState {
  readonly name: string
  readonly phase: string
  readonly version: string
  readonly machines: string
  readonly note: string
}

export interface Story {
  tell(line: Told): void
  /** The state of every cluster, whenever it changes. Only a terminal shows it. */
  clusters(states: readonly ClusterState[]): void
  /** Text for people only, such as commands to try. */
  note(text: string): void
  end(): void
}

export function createStory(io: Io, format: 'text' | 'json', startedAt: number): Story {
  if (format === 'json') return jsonStory(io, startedAt)
  return io.terminal ? terminalStory(io.terminal) : plainStory(io)
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)}s`.padStart(7)
const nothing = () => {}

const plainStory = (io: Io): Story => ({
  tell: ({ at, subject, text }) => io.out(`${seconds(at)}  ${subject}: ${text}`),
  clusters: nothing,
  note: (text) => io.out(text),
  end: nothing,
})

const jsonStory = (io: Io, startedAt: number): Story => ({
  tell: ({ at, ...line }) => io.out(JSON.stringify({ time: new Date(startedAt + at).toISOString(), ...line })),
  clusters: nothing,
  note: nothing,
  end: nothing,
})

/** Lines scroll; below them stays one line per cluster, redrawn in place. */
function terminalStory(terminal: Terminal): Story {
  const paint = colorsOf(terminal)
  let live: string[] = []

  const erase = () => {
    if (live.length > 0) terminal.write(`\u001b[${live.length}A\u001b[J`)
  }
  const draw = (lines: string[]) => {
    live = lines.map((line) => cut(line, terminal.columns - 1))
    for (const line of live) terminal.write(`${line}\n`)
  }
  const above = (text: string) => {
    const below = live
    erase()
    terminal.write(`${text}\n`)
    live = []
    draw(below)
  }

  return {
    tell({ at, subject, text, event }) {
      above(`${paint.dim(seconds(at))}  ${paint.bold(subject)}: ${paint.forEvent(event)(text)}`)
    },
    clusters(states) {
      erase()
      draw(
        states.map(({ name, phase, version, machines, note }) =>
          [`▸ ${name}`, phase, version, machines, note].filter((part) => part !== '').join('  '),
        ),
      )
    },
    note: above,
    end() {
      live = []
    },
  }
}

const cut = (text: string, columns: number): string =>
  text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`

type Paint = (text: string) => string

function colorsOf({ colors }: Terminal): { dim: Paint; bold: Paint; forEvent(event: string): Paint } {
  const sgr =
    (code: number, reset: number): Paint =>
    (text) =>
      colors ? `\u001b[${code}m${text}\u001b[${reset}m` : text
  const [bold, dim, red, green, yellow] = [sgr(1, 22), sgr(2, 22), sgr(31, 39), sgr(32, 39), sgr(33, 39)]
  const forEvent = (event: string): Paint => {
    if (/Available$|Completed$|Running$|Accepted$|Discovered$|Ready$/.test(event) && !/Not/.test(event)) return green
    if (/Not|Refused|Failed/.test(event)) return red
    return /Hook|Deleting|Upgrade/.test(event) ? yellow : (text) => text
  }
  return { dim, bold, forEvent }
}
