import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BeforeClusterCreate } from '@capstan/api'
import { VirtualClock } from '@capstan/kube'
import fc from 'fast-check'
import { afterAll, describe, expect, it, test } from 'vitest'
import { fixture } from '../test-kit/fixtures.ts'
import { HookFailed } from '../client/hook-failed.ts'
import type { ObservedCall } from '../client/observed-call.ts'
import { tapedConfigs, tapeTransport } from './play.ts'
import { createRecorder, type TapeFile, tapedCall } from './recorder.ts'
import { parseTape, type Tape, TapeError } from './tape.ts'
import { openTape, readTape } from './tape-file.ts'

const clock = new VirtualClock()

const call = (overrides: Partial<ObservedCall> = {}): ObservedCall => ({
  hook: BeforeClusterCreate,
  announcedVersion: 'v1alpha1',
  isDeprecated: false,
  handler: 'gate.sample',
  extensionConfig: 'sample',
  url: new URL('https://me:canary@127.0.0.1:9443/hooks?timeout=10s'),
  started: clock.now(),
  took: 3,
  attempts: 1,
  code: 200,
  request: { ...fixture(BeforeClusterCreate), settings: { region: 'eu1', apiToken: 'canary' } },
  outcome: { kind: 'response', response: { status: 'Success', message: 'as Bearer canary' } },
  ...overrides,
})

/** Returns an arbitrary of this value in most cases, otherwise of any JSON value. */
const often = (value: unknown) =>
  fc.oneof({ weight: 12, arbitrary: fc.constant(value) }, { weight: 1, arbitrary: fc.jsonValue() })

/** A file in memory, whose writes fail on request. */
function memoryFile(bytes = 0) {
  const file = { bytes, text: '', problem: undefined as Error | undefined, isClosed: false }
  const tape: TapeFile = {
    bytes,
    async append(text) {
      if (file.problem) throw file.problem
      file.text += text
    },
    async close() {
      file.isClosed = true
    },
  }
  return { file, tape }
}

function recording(options: { bytes?: number; maxBytes?: number } = {}) {
  const { file, tape } = memoryFile(options.bytes)
  const reports: string[] = []
  const report = (problem: string) => reports.push(problem)
  const recorder = createRecorder(tape, { clock, report, ...(options.maxBytes ? { maxBytes: options.maxBytes } : {}) })
  return { ...recorder, file, reports }
}

describe('a recorder', () => {
  it('writes a header, then a line for each call, without secrets', async () => {
    const { observe, close, file } = recording()
    observe(call())
    const failed = {
      kind: 'failed',
      code: 'timeout',
      problem: 'Timeout',
      message: 'Post "https://me:canary@x": expired',
    } as const
    const { code: _, ...unanswered } = call({ outcome: failed })
    observe(unanswered)
    await close()
    expect(file.isClosed).toBe(true)
    expect(file.text).not.toContain('canary')
    const [header, first, second] = file.text.split('\n').map((line) => line && JSON.parse(line))
    expect(header).toEqual({ tape: 'capstan.dev/hook-calls', version: 1, began: '2026-01-01T00:00:00.000Z' })
    expect(first).toEqual({
      group: 'hooks.runtime.cluster.x-k8s.io',
      version: 'v1alpha1',
      hook: 'BeforeClusterCreate',
      handler: 'gate.sample',
      extensionConfig: 'sample',
      url: 'https://127.0.0.1:9443/hooks',
      started: '2026-01-01T00:00:00.000Z',
      took: 3,
      status: 200,
      request: { ...fixture(BeforeClusterCreate), settings: { region: 'eu1', apiToken: '[redacted]' } },
      response: { status: 'Success', message: 'as Bearer [redacted]' },
    })
    const message = 'Post "https://[redacted]@x": expired'
    expect(second).toMatchObject({ failure: { code: 'timeout', problem: 'Timeout', message } })
    expect(second).not.toHaveProperty('status')
  })

  it('stops at its limit, writes the reason in the last line, and reports it once', async () => {
    const { observe, close, file, reports } = recording({ maxBytes: 4000 })
    for (let i = 0; i < 10; i++) observe(call())
    await close()
    const { calls, stopped } = parseTape(file.text)
    expect(stopped).toBe('the tape has reached its limit of 4000 bytes')
    expect(calls.length).toBeGreaterThan(0)
    expect(file.text.length).toBeLessThan(4100)
    expect(reports).toEqual([`Calls of hooks are no longer recorded: ${stopped}`])
  })

  it('stops after a failed write, and reports it once', async () => {
    const { observe, close, file, reports } = recording()
    file.problem = new Error('ENOSPC: no space left on device, write')
    observe(call())
    await Promise.resolve()
    observe(call())
    await close()
    expect(reports).toEqual(['Calls of hooks are no longer recorded: ENOSPC: no space left on device, write'])
  })

  it('stops if the disk is too slow, instead of keeping all calls in memory', async () => {
    const { file, tape } = memoryFile()
    const slow = Promise.withResolvers<void>()
    const reports: string[] = []
    const recorder = createRecorder(
      { ...tape, append: (text) => slow.promise.then(() => tape.append(text)) },
      { clock, report: (problem) => reports.push(problem) },
    )
    for (let i = 0; i < 5; i++) recorder.observe(call({ request: { text: '  ab'.repeat(1024 * 1024) } }))
    slow.resolve()
    await recorder.close()
    expect(reports).toEqual(['Calls of hooks are no longer recorded: the disk is too slow for the recording'])
    expect(parseTape(file.text)).toMatchObject({ stopped: 'the disk is too slow for the recording' })
  })

  it('skips calls that cannot be redacted, reports the first of them, and continues', async () => {
    const { observe, close, file, reports } = recording()
    let deep: object = {}
    for (let i = 0; i < 100_000; i++) deep = { deep }
    observe(call({ request: deep }))
    observe(call({ request: deep }))
    observe(call())
    await close()
    expect(parseTape(file.text).calls).toHaveLength(1)
    expect(reports).toEqual([expect.stringMatching(/^A call of BeforeClusterCreate is not recorded: Maximum call stack/)])
  })
})

const header = '{"tape":"capstan.dev/hook-calls","version":1,"began":"2026-01-01T00:00:00.000Z"}\n'
/** Returns the line of a call. */
async function line(): Promise<string> {
  // A recorder writes no header to a file that is not empty.
  const { observe, close, file } = recording({ bytes: 1 })
  observe(call())
  await close()
  return file.text
}

describe('a reader', () => {
  it('ignores an incomplete last line', async () => {
    const fullLine = await line()
    for (const cut of [1, 10, fullLine.length - 1]) {
      expect(parseTape(`${header}${fullLine}${fullLine.slice(0, cut)}`)).toMatchObject({
        isLastLineIncomplete: true,
        calls: [{ line: 2 }],
      })
    }
    expect(parseTape(`${header}${fullLine}`)).toMatchObject({ isLastLineIncomplete: false, calls: [{ line: 2 }] })
  })

  test.each([
    ['an empty text', '', 'not a tape: the first line is missing'],
    [
      'a document of another kind',
      '{"kind":"List"}\n',
      'not a tape: the first line is not {"tape": "capstan.dev/hook-calls", …}',
    ],
    ['a text that is not JSON', 'apiVersion: v1\n', 'not a tape: the first line is not {"tape": "capstan.dev/hook-calls", …}'],
    [
      'a newer version',
      header.replace(':1,', ':2,'),
      'it is a tape of version 2, and this release reads versions up to 1: use a newer release',
    ],
    ['a version that is not a number', header.replace(':1,', ':"1",'), 'version "1" is not a version of the tape format'],
    ['a damaged line', `${header}{"group":\n{}\n`, 'line 2 is damaged: expected an object in JSON'],
    ['a call without its hook', `${header}{"group":"a","version":"v1"}\n`, 'line 2 is not a call: expected hook to be a string'],
  ])('rejects %s', (_, text, message) => expect(() => parseTape(text)).toThrow(message))

  test('accepts random lines or rejects them with a TapeError; playing accepted lines fails only with HookFailed', async () => {
    const record = JSON.parse(await line()) as Record<string, unknown>
    const fields = fc.record(Object.fromEntries(Object.entries(record).map(([name, value]) => [name, often(value)])), {
      requiredKeys: [],
    })
    const failing = fields.map((one) => ({
      ...one,
      response: undefined,
      failure: { code: 'timeout', problem: 'Timeout', message: '' },
    }))
    const texts = fc.oneof(fields, failing, fc.jsonValue()).map((value) => JSON.stringify(value))
    const cluster = { metadata: { name: 'demo' } }
    await fc.assert(
      fc.asyncProperty(fc.array(texts, { maxLength: 4 }), async (lines) => {
        let tape: Tape
        try {
          tape = parseTape(`${header}${lines.map((text) => `${text}\n`).join('')}`)
        } catch (err) {
          expect(err).toBeInstanceOf(TapeError)
          return
        }
        tapedConfigs(tape)
        const url = new URL('https://x/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/gate')
        const played = tapeTransport(tape).post({ url }, JSON.stringify({ cluster }), new AbortController().signal)
        await played.catch((err: unknown) => expect(err).toBeInstanceOf(HookFailed))
      }),
      { numRuns: 300 * Number(process.env.CAPSTAN_FUZZ ?? 1), seed: 7 },
    )
  })

  it('accepts unknown fields', async () => {
    const futureLine = (await line()).replace('{', '{"later":true,')
    expect(parseTape(header.replace('{', '{"later":true,') + futureLine).calls).toHaveLength(1)
  })
})

describe('the file of a tape', () => {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-tape-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const file = (name: string, text?: string): string => {
    const path = join(folder, name)
    if (text !== undefined) writeFileSync(path, text, { mode: 0o644 })
    return path
  }
  const record = async (path: string) => {
    const recorder = createRecorder(await openTape(path), { clock, report() {} })
    recorder.observe(call())
    await recorder.close()
  }

  it('can be read only by its owner, also if other users could read the existing file', async () => {
    const [fresh, open] = [file('fresh'), file('open', header)]
    for (const path of [fresh, open]) {
      await record(path)
      expect(statSync(path).mode & 0o777).toBe(0o600)
      expect((await readTape(path)).calls).toHaveLength(1)
    }
  })

  test.each([
    ['complete', header],
    ['truncated in a call', `${header}{"group":"hoo`],
    ['truncated in its first line', header.slice(0, 20)],
    ['truncated after a long line', `${header}${JSON.stringify({ stopped: 'x'.repeat(200_000) })}\n${'y'.repeat(200_000)}`],
  ])('is continued when it is %s', async (name, text) => {
    const path = file(name, text)
    await record(path)
    await record(path)
    expect(await readTape(path)).toMatchObject({ isLastLineIncomplete: false, calls: [{ hook: 'BeforeClusterCreate' }, {}] })
  })

  it('is rejected with an error that names the path if the path is a folder', async () => {
    const error = await readTape(tmpdir()).catch((err: unknown) => err)
    expect(error).toMatchObject({ message: expect.stringContaining(`${tmpdir()}: EISDIR`), cause: { code: 'EISDIR' } })
  })

  test.each([
    ['is not a tape', 'my precious notes\n'],
    ['is a tape of a newer version', header.replace(':1,', ':7,')],
  ])('is rejected with an error that names it, and is not changed, when its content %s', async (name, text) => {
    const path = file(name, text)
    await expect(openTape(path)).rejects.toThrow(path)
    await expect(readTape(path)).rejects.toThrow(path)
    expect(readFileSync(path, 'utf8')).toBe(text)
    expect(statSync(path).mode & 0o777).toBe(0o644)
  })

  it('is named in the error if it cannot be opened', () =>
    expect(openTape(join(folder, 'no', 'such'))).rejects.toThrow(/ENOENT.*no\/such/))
})

test('the record of a call contains the number of attempts only if there were several', () => {
  expect(tapedCall(call())).not.toHaveProperty('attempts')
  expect(tapedCall(call({ attempts: 2 }))).toMatchObject({ attempts: 2 })
})
