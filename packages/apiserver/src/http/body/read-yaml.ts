/**
 * Parses YAML of clients. A body of the accepted size can take many seconds of CPU time, so long texts are parsed in a thread, which is
 * terminated when it takes too long, uses too much memory, or the request has ended. Users share the threads.
 */
import { Worker } from 'node:worker_threads'
import { type Clock, seconds } from '@capstan/kube'
import type { Requester, HttpRequest } from '../exchange.ts'
import { readYAML, type YAMLTask } from './yaml.ts'

export type YAMLOutcome = { readonly value: unknown } | { readonly error: string }

/** Shorter texts are parsed faster than a thread starts. */
const MaxInline = 8 * 1024
const MaxTime = seconds(10)
const MaxHeapMegabytes = 512

/** Returns a seat for a thread; calling the result releases it. @throws TooManyRequests after a limited time */
export type ThreadSeats = (requester: Requester, signal: AbortSignal) => (() => void) | Promise<() => void>

/** Parsers of YAML for the decoders of bodies. */
export type YAMLSource = Pick<YAMLReader, 'read' | 'duplicates'>

type YAMLRequest = Pick<HttpRequest, 'requester' | 'ended'>

export class YAMLReader {
  readonly #clock: Clock
  readonly #seats: ThreadSeats

  constructor(clock: Clock, seats: ThreadSeats = () => () => {}) {
    this.#clock = clock
    this.#seats = seats
  }

  /** Returns a parser for a request, with the thread limits of its user, until the request ends. */
  for(request: YAMLRequest): YAMLSource {
    return {
      read: (text) => this.read(text, request),
      duplicates: (text) => this.duplicates(text, request),
    }
  }

  /** @throws Error with the parse error, with Go's text where Go has one */
  read(text: string, request: YAMLRequest = {}): Promise<unknown> {
    return this.#parse({ text, wanted: 'value' }, request)
  }

  /** Returns the duplicate keys of a valid text, with Go's text for each. */
  async duplicates(text: string, request: YAMLRequest = {}): Promise<readonly string[]> {
    return (await this.#parse({ text, wanted: 'duplicates' }, request)) as readonly string[]
  }

  async #parse(task: YAMLTask, { requester = anonymous, ended }: YAMLRequest): Promise<unknown> {
    if (task.text.length <= MaxInline) return readYAML(task)
    const signal = ended?.() ?? never
    const release = await this.#seats(requester, signal)
    try {
      const outcome = await inThread(task, this.#clock, signal)
      if ('error' in outcome) throw new Error(outcome.error)
      return outcome.value
    } finally {
      release()
    }
  }
}

const anonymous: Requester = { level: '', flow: '', isExempt: false }
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
      // Resolves only after the thread has ended, because its seat is then given to another.
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
