import { VirtualClock } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import type { Io } from '../io.ts'
import { type FakeTerminal, fakeTerminal } from './fake-terminal.ts'
import { type ClusterState, createStory, type TimedLine } from './story.ts'

function start(format: 'text' | 'json', terminal?: FakeTerminal) {
  const clock = new VirtualClock()
  const lines: string[] = []
  const io: Io = {
    out: (line) => void lines.push(line),
    err() {},
    terminal,
    pid: 1,
    cwd: '/',
    env: {},
    signal: new AbortController().signal,
  }
  const story = createStory(io, format, clock, clock.now())
  const clusters = (states: ClusterState[]) => {
    story.clusters(() => states)
    clock.step(clock.now() + 100)
  }
  return { story, lines, clusters }
}

const line = (at: number, event: string, subject: string, text: string): TimedLine => ({ at, event, subject, text })
const ready = line(412, 'ApiServerReady', 'API server', 'ready at https://127.0.0.1:6443')
const created = line(1200, 'ClusterCreated', 'Cluster default/demo', 'created (1 control plane machine, 2 workers)')
const available = line(61_930, 'ClusterAvailable', 'Cluster default/demo', 'Available after 5.1 s')
const state = (name: string, fields: Partial<ClusterState> = {}): ClusterState => ({
  name: `default/${name}`,
  phase: 'Available',
  version: 'v1.36.0',
  machines: '3/3 machines running',
  note: '',
  ...fields,
})

describe('output to a pipe', () => {
  test('prints one plain line for each event', () => {
    const { story, lines, clusters } = start('text')
    story.report(ready)
    clusters([state('demo')])
    story.report(created)
    story.report(available)
    story.note('Try this')
    expect(lines.join('\n')).toMatchInlineSnapshot(`
      "   0.4s  API server: ready at https://127.0.0.1:6443
         1.2s  Cluster default/demo: created (1 control plane machine, 2 workers)
        61.9s  Cluster default/demo: Available after 5.1 s
      Try this"
    `)
  })

  test('prints a message of several lines on one line', () => {
    const { story, lines } = start('text')
    story.report(line(0, 'TopologyNotReconciled', 'Cluster default/demo', 'failed:\n  * one\r\n  * two\u001b[2J'))
    expect(lines).toEqual(['   0.0s  Cluster default/demo: failed: * one * two [2J'])
  })

  test('truncates a message of 33,000 characters', () => {
    const { story, lines } = start('text')
    story.report(line(0, 'HookBlocking', 'Cluster default/demo', '😀'.repeat(33_000)))
    expect(lines.join('').length).toBeLessThan(5000)
    expect(lines[0]).toMatch(/😀\.\.\. \(truncated\)$/)
  })

  test('prints JSON with escapes for control characters that terminals interpret', () => {
    const { story, lines } = start('json')
    story.report(line(0, 'TopologyNotReconciled', 'Cluster default/demo', 'a\u009b2J\u202e'))
    expect(lines.join()).toContain('a\\u009b2J\\u202e')
    expect(JSON.parse(lines.join())).toMatchObject({ text: 'a\u009b2J\u202e' })
  })

  test('prints JSON as one object per line, with the time and without hints', () => {
    const { story, lines, clusters } = start('json')
    story.report(created)
    clusters([state('demo')])
    story.note('Try this')
    expect(lines.map((text) => JSON.parse(text) as unknown)).toEqual([
      {
        time: '2026-01-01T00:00:01.200Z',
        event: 'ClusterCreated',
        subject: 'Cluster default/demo',
        text: 'created (1 control plane machine, 2 workers)',
      },
    ])
  })
})

describe('output to a terminal', () => {
  test('prints events above one live line per cluster, which is redrawn in place', () => {
    const terminal = fakeTerminal()
    const { story, clusters } = start('text', terminal)
    story.report(ready)
    clusters([state('demo', { phase: 'Provisioning', machines: '0/1 machines running', note: 'Cluster is being created' })])
    story.report(created)
    expect(terminal.text()).toMatchInlineSnapshot(`
      "   0.4s  API server: ready at https://127.0.0.1:6443
         1.2s  Cluster default/demo: created (1 control plane machine, 2 workers)
      ▸ default/demo  Provisioning  v1.36.0  0/1 machines running  Cluster is being …"
    `)

    clusters([state('demo'), state('second-of-them', { phase: 'Pending', machines: '0/0 machines running' })])
    story.report(available)
    expect(terminal.text()).toMatchInlineSnapshot(`
      "   0.4s  API server: ready at https://127.0.0.1:6443
         1.2s  Cluster default/demo: created (1 control plane machine, 2 workers)
        61.9s  Cluster default/demo: Available after 5.1 s
      ▸ default/demo            Available  v1.36.0  3/3 machines running
      ▸ default/second-of-them  Pending    v1.36.0  0/0 machines running"
    `)
  })

  test('leaves the last state on the screen at the end', () => {
    const terminal = fakeTerminal()
    const { story } = start('text', terminal)
    story.report(ready)
    story.clusters(() => [state('demo')])
    story.end()
    expect(terminal.text()).toMatchInlineSnapshot(`
      "   0.4s  API server: ready at https://127.0.0.1:6443
      ▸ default/demo  Available  v1.36.0  3/3 machines running"
    `)
  })

  test('wraps lines of events and truncates live lines', () => {
    const terminal = fakeTerminal({ columns: 40 })
    const { story, clusters } = start('text', terminal)
    clusters([state('demo', { note: 'Following hooks are blocking' })])
    story.report(created)
    story.report(created)
    expect(terminal.text()).toMatchInlineSnapshot(`
      "   1.2s  Cluster default/demo: created (
      1 control plane machine, 2 workers)
         1.2s  Cluster default/demo: created (
      1 control plane machine, 2 workers)
      ▸ default/demo  Available  v1.36.0  3/…"
    `)
  })

  test('redraws the live lines in place after the window was made narrower', () => {
    const terminal = fakeTerminal({ columns: 60 })
    const { story, clusters } = start('text', terminal)
    story.report(ready)
    clusters([state('demo')])
    terminal.narrow(30)
    clusters([state('demo', { phase: 'Deleting' })])
    expect(terminal.text()).toMatchInlineSnapshot(`
      "   0.4s  API server: ready at 
      https://127.0.0.1:6443
      ▸ default/demo  Deleting  v1…"
    `)
  })

  test('shows as many clusters as fit into half of the window, and first those that are not Available', () => {
    const terminal = fakeTerminal({ rows: 10 })
    const { clusters } = start('text', terminal)
    const many = Array.from({ length: 30 }, (_, i) => state(`c${String(i).padStart(2, '0')}`))
    many[17] = state('c17', { phase: 'Deleting', machines: '1/2 machines running' })
    clusters(many)
    expect(terminal.text()).toMatchInlineSnapshot(`
      "▸ default/c17  Deleting   v1.36.0  1/2 machines running
      ▸ default/c00  Available  v1.36.0  3/3 machines running
      ▸ default/c01  Available  v1.36.0  3/3 machines running
      ▸ default/c02  Available  v1.36.0  3/3 machines running
        … and 26 more; 29 of 30 Available"
    `)
    clusters(many.slice(0, 2))
    expect(terminal.text().split('\n')).toHaveLength(2)
  })

  test('draws a burst of changes once', () => {
    const terminal = fakeTerminal()
    const { story, clusters } = start('text', terminal)
    for (let i = 0; i < 100; i++) story.clusters(() => [state('demo')])
    clusters([state('demo')])
    expect(terminal.raw().match(/▸/g)).toHaveLength(1)
  })

  test.each([
    { event: 'ClusterAvailable', code: '32', looks: 'green' },
    { event: 'TopologyNotReconciled', code: '31', looks: 'red' },
    { event: 'HookFailed', code: '31', looks: 'red' },
    { event: 'ExtensionStopped', code: '31', looks: 'red' },
    { event: 'HookBlocking', code: '33', looks: 'yellow' },
  ])('$event is $looks', ({ event, code }) => {
    const terminal = fakeTerminal({ colors: true })
    start('text', terminal).story.report(line(0, event, 'it', 'happened'))
    expect(terminal.raw()).toBe(`\u001b[2m   0.0s\u001b[0m  \u001b[1mit\u001b[0m: \u001b[${code}mhappened\u001b[0m\n`)
  })

  test('has no colours when they are switched off', () => {
    const terminal = fakeTerminal({ colors: false })
    const { story, clusters } = start('text', terminal)
    clusters([state('demo')])
    story.report(available)
    for (const part of terminal.raw().split('\u001b').slice(1)) expect(part).toMatch(/^\[(\d+A|J)/)
  })
})
