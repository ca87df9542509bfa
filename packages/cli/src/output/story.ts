/** Prints the events of a management cluster: as plain lines, as JSON lines, or on a terminal above live lines, one per cluster if they fit. */
import { largest, shortened } from '@capstan/kube'
import type { Clock, Timer } from '@capstan/kube'
import type { Line } from '@capstan/lab'
import type { Io, Terminal } from '../io.ts'
import { jsonLine, oneLine } from './one-line.ts'

/** An event with its time. */
export interface TimedLine extends Line {
  /** Milliseconds since the start of the program. */
  readonly at: number
}

/** State of a cluster for its live line. */
export interface ClusterState {
  /** `namespace/name` of the Cluster. */
  readonly name: string
  /** `Available`, or the phase of the Cluster. */
  readonly phase: string
  /** Kubernetes version of the topology; empty without a topology. */
  readonly version: string
  /** Text about the Machines, such as `1/2 machines running`. */
  readonly machines: string
  /** Message of the condition TopologyReconciled while the condition is False; otherwise empty. */
  readonly note: string
}

/** Output of events and of the states of clusters. */
export interface Story {
  report(line: TimedLine): void
  /** Schedules a redraw of the live lines. `read` returns the states of all clusters, and is called only for terminals. */
  clusters(read: () => readonly ClusterState[]): void
  /** Prints a text for people, such as commands to try; omitted in JSON output. */
  note(text: string): void
  /** Stops redrawing, and leaves the last state on the screen. */
  end(): void
}

/** Creates the output for a format. `startedAt` is the start of the program in milliseconds since the epoch. */
export function createStory(io: Io, format: 'text' | 'json', clock: Clock, startedAt: number): Story {
  if (format === 'json') return jsonStory(io, startedAt)
  return io.terminal ? terminalStory(io.terminal, clock) : plainStory(io)
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)}s`.padStart(7)
const doNothing = () => {}

/** Maximum length, in characters, of an event's text in lines for people. JSON output contains the whole text. */
const TextLengthLimit = 2000
const eventText = (text: string): string => shortened(oneLine(text), TextLengthLimit)

const plainStory = (io: Io): Story => ({
  report: ({ at, subject, text }) => io.out(`${seconds(at)}  ${subject}: ${eventText(text)}`),
  clusters: doNothing,
  note: (text) => io.out(text),
  end: doNothing,
})

const jsonStory = (io: Io, startedAt: number): Story => ({
  report: ({ at, ...line }) => io.out(jsonLine({ time: new Date(startedAt + at).toISOString(), ...line })),
  clusters: doNothing,
  note: doNothing,
  end: doNothing,
})

/** Milliseconds from a change to the redraw. Further changes in this time cause no further redraw. */
const RedrawInterval = 50

/** Prints events above the lines of `liveLines`, which are redrawn in place. */
function terminalStory(terminal: Terminal, clock: Clock): Story {
  const paint = painter(terminal)
  let liveSpans: readonly Span[][] = []
  let read: () => readonly ClusterState[] = () => []
  let pending: Timer | undefined

  // After the terminal was made narrower, wrapped live lines occupy more rows.
  const erase = () => {
    const rows = liveSpans.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / terminal.columns)), 0)
    return rows === 0 ? '' : `\u001b[${rows}A\u001b[J`
  }
  const drawn = () => liveSpans.map((line) => `${line.map(paint).join('')}\n`).join('')
  // A single write avoids flicker.
  const printAbove = (text: string) => terminal.write(`${erase()}${text}\n${drawn()}`)
  const redraw = () => {
    pending = undefined
    const cleared = erase()
    liveSpans = liveLines(read(), terminal)
    terminal.write(cleared + drawn())
  }

  return {
    report({ at, subject, text, event }) {
      const [timeSpan, subjectSpan, textSpan] = [dim(seconds(at)), bold(subject), { text: eventText(text), ...styleOf(event) }]
      printAbove(`${paint(timeSpan)}  ${paint(subjectSpan)}: ${paint(textSpan)}`)
    },
    clusters(readStates) {
      read = readStates
      pending ??= clock.schedule(RedrawInterval, redraw)
    },
    note: printAbove,
    end() {
      pending?.cancel()
      if (pending) redraw()
      liveSpans = []
    },
  }
}

/** Orders `c2` before `c10`. */
const naturalOrder = new Intl.Collator('en', { numeric: true })

/**
 * Returns one line per cluster, ordered by name. If the lines do not fit into half of the terminal, puts Available clusters without a
 * note at the end, omits the clusters that do not fit, and adds a line with their number.
 */
function liveLines(states: readonly ClusterState[], { columns, rows }: Terminal): Span[][] {
  const maxLines = Math.max(1, Math.floor(rows / 2))
  const byName = [...states].sort((a, b) => naturalOrder.compare(a.name, b.name))
  const isSettled = ({ phase, note }: ClusterState) => phase === 'Available' && note === ''
  const ordered =
    byName.length <= maxLines
      ? byName
      : [...byName.filter((state) => !isSettled(state)), ...byName.filter(isSettled)].slice(0, maxLines - 1)
  const hidden = byName.length - ordered.length
  const width = (field: keyof ClusterState) => Math.max(0, largest(ordered.map((state) => state[field].length)))
  const [name, phase, version, machines] = [width('name'), width('phase'), width('version'), width('machines')]
  const lines = ordered.map((state) => [
    { text: '▸ ' },
    bold(state.name.padEnd(name)),
    {
      text: `  ${state.phase.padEnd(phase)}`,
      ...(state.phase === 'Available' ? { color: 'green' as const } : { color: 'yellow' as const }),
    },
    { text: `  ${state.version.padEnd(version)}  ${state.machines.padEnd(machines)}` },
    ...(state.note === '' ? [] : [dim(`  ${oneLine(state.note)}`)]),
  ])
  if (hidden > 0) {
    const available = states.filter((state) => state.phase === 'Available').length
    lines.push([dim(`  … and ${hidden} more; ${available} of ${states.length} Available`)])
  }
  // The last column stays empty, because some terminals wrap when it is filled.
  return lines.map((line) => truncate(line, columns - 1))
}

/** Text with one style. */
interface Span {
  readonly text: string
  readonly color?: keyof typeof colors
  readonly weight?: keyof typeof weights
}

const colors = { red: 31, green: 32, yellow: 33 } as const
const weights = { bold: 1, dim: 2 } as const
const bold = (text: string): Span => ({ text, weight: 'bold' })
const dim = (text: string): Span => ({ text, weight: 'dim' })

const painter =
  (terminal: Terminal) =>
  ({ text, color, weight }: Span): string => {
    if (!terminal.colors || (!color && !weight)) return text
    const on = [weight && weights[weight], color && colors[color]].filter((code) => code !== undefined).join(';')
    return `\u001b[${on}m${text}\u001b[0m`
  }

function styleOf(event: string): Pick<Span, 'color'> {
  if (/Not|Refused|Failed|Stopped/.test(event)) return { color: 'red' }
  if (/(Available|Completed|Running|Accepted|Discovered|Ready)$/.test(event)) return { color: 'green' }
  return /Hook|Deleting|Upgrade/.test(event) ? { color: 'yellow' } : {}
}

const widthOf = (line: readonly Span[]): number => line.reduce((sum, { text }) => sum + text.length, 0)

function truncate(line: readonly Span[], columns: number): Span[] {
  if (widthOf(line) <= columns) return [...line]
  const fitting: Span[] = []
  let remaining = Math.max(0, columns - 1)
  for (const span of line) {
    fitting.push({ ...span, text: span.text.slice(0, remaining) })
    remaining -= span.text.length
    if (remaining <= 0) break
  }
  return [...fitting, { text: '…' }]
}
