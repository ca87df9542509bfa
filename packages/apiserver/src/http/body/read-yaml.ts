/**
 * Parses YAML of clients. A body of the accepted size can take many seconds of CPU time, so long texts are parsed in a thread. The thread
 * is terminated when it takes too long, uses too much memory, or the request has ended. `ThreadSeats` limits the number of threads.
 */
import { Worker } from 'node:worker_threads'
import { type Clock, seconds } from '@capstan/kube'
import type { Requester, HttpRequest } from '../exchange.ts'
import { readYAML, type YAMLDocument } from './yaml.ts'

export type YAMLOutcome = { readonly document: YAMLDocument } | { readonly error: string }

/** Maximum length, in UTF-16 code units, of texts that are parsed without a thread: this takes less time than the start of a thread. */
const MaxInline = 8 * 1024
const MaxTime = seconds(10)
const MaxHeapMegabytes = 512

/**
 * Acquires a seat for a thread; calling the result releases the seat.
 *
 * @throws TooManyRequests when no seat is free in time, too many requests wait, or `signal` aborts first
 */
export type ThreadSeats = (requester: Requester, signal: AbortSignal) => (() => void) | Promise<() => void>

/**
 * Parses YAML for the decoders of bodies.
 *
 * @throws Error when the text cannot be parsed (if possible with the error text of Go's parser), exceeds a limit, or the request ends while
 * a thread parses the text
 * @throws TooManyRequests when the request gets no thread, see `ThreadSeats`
 */
export type YAMLParser = (text: string) => Promise<YAMLDocument>

type YAMLRequest = Pick<HttpRequest, 'requester' | 'ended'>

export class YAMLReader {
  readonly #clock: Clock
  readonly #acquireSeat: ThreadSeats

  constructor(clock: Clock, seats: ThreadSeats = () => () => {}) {
    this.#clock = clock
    this.#acquireSeat = seats
  }

  /** Returns a parser for the body of a request. */
  for(request: YAMLRequest): YAMLParser {
    return (text) => this.read(text, request)
  }

  /**
   * Parses the body of a request.
   *
   * @throws Error when the text cannot be parsed (if possible with the error text of Go's parser), exceeds a limit, or the request ends while
   * a thread parses the text
   * @throws TooManyRequests when the request gets no thread, see `ThreadSeats`
   */
  async read(text: string, { requester = anonymous, ended }: YAMLRequest = {}): Promise<YAMLDocument> {
    if (text.length <= MaxInline) return readYAML(text)
    const signal = ended?.() ?? neverAborted
    const release = await this.#acquireSeat(requester, signal)
    try {
      const outcome = await inThread(text, this.#clock, signal)
      if ('error' in outcome) throw new Error(outcome.error)
      return outcome.document
    } finally {
      release()
    }
  }
}

const anonymous: Requester = { level: '', flow: '', isExempt: false }
const neverAborted = new AbortController().signal

function inThread(text: string, clock: Clock, signal: AbortSignal): Promise<YAMLOutcome> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(requestEnded)
    const worker = new Worker(new URL('./yaml-worker.ts', import.meta.url), {
      workerData: text,
      resourceLimits: { maxOldGenerationSizeMb: MaxHeapMegabytes },
    })
    let isOver = false
    const end = (outcome: YAMLOutcome) => {
      if (isOver) return
      isOver = true
      timer.cancel()
      signal.removeEventListener('abort', abort)
      // Resolves only after the thread has ended, because another thread may then take its seat.
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
