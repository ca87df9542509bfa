/**
 * Reads YAML of clients. A body of the accepted size can keep a processor busy for many seconds, so that long texts are read in a thread,
 * which is stopped when it takes too long or too much memory, or when the request has ended. Threads are shared by user.
 */
import { Worker } from 'node:worker_threads'
import { type Clock, seconds } from '@capstan/kube'
import type { Asker, HttpRequest } from '../exchange.ts'
import { readYAML, type YAMLTask } from './yaml.ts'

export type YAMLOutcome = { readonly value: unknown } | { readonly error: string }

/** Shorter texts take less time than starting a thread does. */
const MaxInline = 8 * 1024
const MaxTime = seconds(10)
const MaxHeapMegabytes = 512

/** Returns when a thread is free for the request; the result gives the thread back. @throws TooManyRequests after a limited time */
export type ThreadSeats = (asker: Asker, signal: AbortSignal) => (() => void) | Promise<() => void>

/** What decoders of bodies read YAML with. */
export type YAMLSource = Pick<YAMLReader, 'read' | 'duplicates'>

type From = Pick<HttpRequest, 'asker' | 'ended'>

export class YAMLReader {
  readonly #clock: Clock
  readonly #seats: ThreadSeats

  constructor(clock: Clock, seats: ThreadSeats = () => () => {}) {
    this.#clock = clock
    this.#seats = seats
  }

  /** Reads on behalf of a request, with the threads of its user and not longer than the request lasts. */
  for(request: From): YAMLSource {
    return {
      read: (text) => this.read(text, request),
      duplicates: (text) => this.duplicates(text, request),
    }
  }

  /** @throws Error that says what is wrong with the text, in Go's wording where there is one */
  read(text: string, request: From = {}): Promise<unknown> {
    return this.#ask({ text, wanted: 'value' }, request)
  }

  /** Of a text that can be read, the keys that mappings have more than once, each in a line of Go's wording. */
  async duplicates(text: string, request: From = {}): Promise<readonly string[]> {
    return (await this.#ask({ text, wanted: 'duplicates' }, request)) as readonly string[]
  }

  async #ask(task: YAMLTask, { asker = nobody, ended }: From): Promise<unknown> {
    if (task.text.length <= MaxInline) return readYAML(task)
    const signal = ended?.() ?? never
    const release = await this.#seats(asker, signal)
    try {
      const outcome = await inThread(task, this.#clock, signal)
      if ('error' in outcome) throw new Error(outcome.error)
      return outcome.value
    } finally {
      release()
    }
  }
}

const nobody: Asker = { level: '', flow: '', isExempt: false }
const never = new AbortController().signal

function inThread(task: YAMLTask, clock: Clock, signal: AbortSignal): Promise<YAMLOutcome> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(requestEnded)
    const worker = new Worker(new URL('./yaml-worker.ts', import.meta.url), {
      workerData: task,
      resourceLimits: { maxOldGenerationSizeMb: MaxHeapMegabytes },
    })
    let isOver = false
    const end = (outcome: YAMLOutcome) => {
      if (isOver) return
      isOver = true
      timer.cancel()
      signal.removeEventListener('abort', abort)
      // The thread is given back once it has ended.
      void worker.terminate().then(() => resolve(outcome))
    }
    const abort = () => end(requestEnded)
    signal.addEventListener('abort', abort, { once: true })
    const timer = clock.schedule(MaxTime, () => end({ error: 'yaml: document takes too long to read' }))
    worker.once('message', end)
    worker.once('error', () => end({ error: 'yaml: document takes too much memory to read' }))
    worker.once('exit', () => end({ error: 'yaml: document cannot be read' }))
  })
}

const requestEnded: YAMLOutcome = { error: 'yaml: the request has ended' }
