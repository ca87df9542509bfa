import { VirtualClock } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { LoadError, type RunningExtension } from './extension-process.ts'
import { type Reload, Reloader } from './reloader.ts'

/** A load in progress; the test calls `succeeds` or `fails` to complete it. */
interface Load {
  readonly at: number
  readonly signal: AbortSignal
  succeeds(name: string, options?: { delaysCalls?: boolean }): Promise<FakeExtension>
  fails(problem: string): Promise<void>
}

interface FakeExtension extends RunningExtension {
  readonly answered: string[]
  readonly retired: boolean
  answerAll(): void
  ends(why: string): Promise<void>
}

const settle = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve()
}

function setUp() {
  const clock = new VirtualClock(0)
  const loads: Load[] = []
  const reloads: string[] = []
  const watched: string[][] = []
  const reloader = new Reloader({
    clock,
    load: (signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('aborted')))
        loads.push({
          at: clock.now(),
          signal,
          async succeeds(name, options) {
            const extension = fakeExtension(name, options)
            resolve(extension)
            await settle()
            return extension
          },
          async fails(problem) {
            reject(new LoadError(problem, ['broken.ts']))
            await settle()
          },
        })
      }),
    onReload: (reload) => void reloads.push(textOf(reload)),
    watch: (files) => void watched.push([...files]),
  })
  const advance = (ms: number) => {
    const end = clock.now() + ms
    while (clock.step(end));
  }
  const call = async () => (await reloader.handle(new Request('https://extension.test/'))).text()
  return { clock, reloader, loads, reloads, watched, advance, call }
}

function fakeExtension(name: string, { delaysCalls = false } = {}): FakeExtension {
  const ended = Promise.withResolvers<string>()
  const idle = Promise.withResolvers<void>()
  const waiting: (() => void)[] = []
  const answered: string[] = []
  let retired = false
  return {
    name,
    handlers: [],
    files: [`${name}.ts`],
    ended: ended.promise,
    answered,
    get retired() {
      return retired
    },
    async handle() {
      if (delaysCalls) await new Promise<void>((resolve) => waiting.push(resolve))
      answered.push(name)
      return new Response(name)
    },
    answerAll() {
      for (const answer of waiting.splice(0)) answer()
      idle.resolve()
    },
    async retire() {
      if (waiting.length > 0) await idle.promise
      retired = true
    },
    async ends(why) {
      ended.resolve(why)
      await settle()
    },
  }
}

const textOf = (reload: Reload): string => {
  if (reload.kind === 'loaded') return `${reload.extension.name} ${reload.first ? 'first' : `after ${reload.took}`}`
  return reload.kind === 'notLoaded'
    ? `${reload.problem}, ${reload.keepsOld ? 'old one keeps running' : 'nothing runs'}`
    : reload.why
}

describe('a change of files', () => {
  test('is loaded 40 ms after the save', async () => {
    const { reloader, loads, reloads, advance, call } = setUp()
    reloader.start()
    await loads[0]!.succeeds('old')
    advance(1000)
    reloader.changed()
    advance(39)
    expect(loads).toHaveLength(1)
    advance(1)
    expect(loads[1]).toMatchObject({ at: 1040 })
    await loads[1]!.succeeds('new')
    expect(reloads).toEqual(['old first', 'new after 40'])
    expect(await call()).toBe('new')
  })

  test('in several saves causes one load, 40 ms after the last save', () => {
    const { reloader, loads, advance } = setUp()
    for (let step = 0; step < 5; step++) {
      reloader.changed()
      advance(20)
    }
    advance(1000)
    expect(loads.map(({ at }) => at)).toEqual([120])
  })

  test('is loaded after 200 ms while files change continuously', () => {
    const { reloader, loads, advance } = setUp()
    for (let step = 0; step < 21; step++) {
      reloader.changed()
      advance(10)
    }
    expect(loads.map(({ at }) => at)).toEqual([200])
  })

  test('during a load aborts that load and begins another', async () => {
    const { reloader, loads, reloads, advance, call } = setUp()
    reloader.changed()
    advance(40)
    reloader.changed()
    advance(40)
    expect(loads.map(({ signal }) => signal.aborted)).toEqual([true, false])
    const outdated = await loads[0]!.succeeds('outdated')
    await loads[1]!.succeeds('newest')
    expect(reloads).toEqual(['newest first'])
    expect(outdated.answered).toEqual([])
    expect(await call()).toBe('newest')
  })
})

describe('calls', () => {
  test('in progress are completed by the extension that received them, which is then retired', async () => {
    const { reloader, loads, advance, call } = setUp()
    reloader.start()
    const old = await loads[0]!.succeeds('old', { delaysCalls: true })
    const callBeforeChange = call()
    await settle()
    reloader.changed()
    advance(40)
    const callDuringLoad = call()
    await settle()
    await loads[1]!.succeeds('new')
    expect(await call()).toBe('new')
    expect(old.retired).toBe(false)
    old.answerAll()
    expect(await Promise.all([callBeforeChange, callDuringLoad])).toEqual(['old', 'old'])
    await settle()
    expect(old.retired).toBe(true)
  })

  test('before the first load are rejected with 503 and the reason', async () => {
    const { reloader } = setUp()
    const response = await reloader.handle(new Request('https://extension.test/'))
    expect([response.status, await response.text()]).toEqual([503, 'the extension has not been loaded yet\n'])
  })

  test('between the end of the extension process and the next load are rejected with 503 and the reason', async () => {
    const { reloader, loads } = setUp()
    reloader.start()
    await (await loads[0]!.succeeds('old')).ends('exit code 1')
    const response = await reloader.handle(new Request('https://extension.test/'))
    expect([response.status, await response.text()]).toEqual([
      503,
      'the extension has ended; it starts again after a second, or when its files change\n',
    ])
  })
})

describe('a module that does not load', () => {
  test('does not replace the previous extension; the problem is reported, and the files of the module are watched', async () => {
    const { reloader, loads, reloads, watched, advance, call } = setUp()
    reloader.start()
    await loads[0]!.succeeds('old')
    reloader.changed()
    advance(40)
    await loads[1]!.fails('extension.ts:3: Expression expected')
    expect(reloads.at(-1)).toBe('extension.ts:3: Expression expected, old one keeps running')
    expect(watched).toEqual([['old.ts'], ['broken.ts']])
    expect(await call()).toBe('old')
    reloader.changed()
    advance(40)
    await loads[2]!.succeeds('fixed')
    expect(await call()).toBe('fixed')
  })

  test('is loaded again only after a save, even if no extension is running', async () => {
    const { reloader, loads, reloads, advance } = setUp()
    reloader.start()
    await loads[0]!.fails('no')
    advance(60_000)
    expect(loads).toHaveLength(1)
    reloader.changed()
    advance(40)
    await loads[1]!.succeeds('one')
    expect(reloads).toEqual(['no, nothing runs', 'one first'])
  })
})

describe('an extension whose process ends', () => {
  test('is reported, and started again after one second', async () => {
    const { reloader, loads, reloads, advance } = setUp()
    reloader.start()
    await (await loads[0]!.succeeds('one')).ends('exit code 1')
    expect(reloads).toEqual(['one first', 'exit code 1'])
    advance(999)
    expect(loads).toHaveLength(1)
    advance(1)
    expect(loads).toHaveLength(2)
  })

  test('after it was replaced is neither reported nor started again', async () => {
    const { reloader, loads, reloads, advance } = setUp()
    reloader.start()
    const old = await loads[0]!.succeeds('old')
    reloader.changed()
    advance(40)
    await loads[1]!.succeeds('new')
    await old.ends('exit code 0')
    advance(10_000)
    expect(reloads).toEqual(['old first', 'new after 40'])
    expect(loads).toHaveLength(2)
  })
})

test('close waits for calls in progress, and prevents further loads', async () => {
  const { reloader, loads, advance, call } = setUp()
  reloader.start()
  const extension = await loads[0]!.succeeds('one', { delaysCalls: true })
  const callBeforeChange = call()
  await settle()
  reloader.changed()
  let closed = false
  const closing = reloader.close().then(() => {
    closed = true
  })
  advance(10_000)
  await settle()
  expect({ closed, loads: loads.length }).toEqual({ closed: false, loads: 1 })
  extension.answerAll()
  expect(await callBeforeChange).toBe('one')
  await closing
  reloader.changed()
  advance(10_000)
  expect(loads).toHaveLength(1)
})
