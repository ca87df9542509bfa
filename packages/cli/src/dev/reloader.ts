/**
 * Reloads an extension when its files change: each load uses a new process, and the old process serves calls until the new one is
 * ready. If the load fails, the old process keeps serving, and the failure is reported.
 */
import type { FetchHandler } from '@capstan/extension'
import type { Clock, Timer } from '@capstan/kube'
import { messageOf, seconds } from '@capstan/kube'
import { LoadError, type RunningExtension } from './extension-process.ts'

export type Reload =
  /** `took`: milliseconds since the save, or since the load began if no save caused it. `first`: whether no version was loaded before. */
  | { readonly kind: 'loaded'; readonly extension: RunningExtension; readonly took: number; readonly first: boolean }
  /** The module cannot be loaded. `keepsOld`: whether the previous version keeps running. */
  | { readonly kind: 'notLoaded'; readonly problem: string; readonly keepsOld: boolean }
  /** The process that serves calls has ended. */
  | { readonly kind: 'ended'; readonly why: string }

export interface ReloaderOptions {
  readonly clock: Clock
  /** Loads the extension in a new process. @throws LoadError if its module cannot be loaded */
  load(signal: AbortSignal): Promise<RunningExtension>
  onReload(reload: Reload): void
  /** Adds files to watch. */
  watch(files: readonly string[]): void
}

/**
 * Milliseconds without a change after which a reload starts, because editors write a file in several steps and users save several
 * files at once.
 */
const QuietTime = 40
/** Milliseconds from the first change until a reload starts, even if files still change. */
const DelayLimit = 200
/** Delay before an extension whose process ended is started again, to avoid a busy loop. */
const RestartDelay = seconds(1)
/** Milliseconds that `close` waits for pending calls of the extension that was loaded last. */
const CloseTimeLimit = seconds(1)

export class Reloader {
  readonly #options: ReloaderOptions
  #current: RunningExtension | undefined
  #loadedBefore = false
  #loading: AbortController | undefined
  #pending: Timer | undefined
  /** Time of the first save since the last load began. */
  #savedAt: number | undefined
  /** Promises that resolve when retired processes have ended. Each process first gets time to complete its pending calls. */
  readonly #retiring = new Set<Promise<void>>()
  #closed = false

  constructor(options: ReloaderOptions) {
    this.#options = options
  }

  /** Handles a call with the extension that was loaded last; responds with 503 while none runs. */
  readonly handle: FetchHandler = async (request) => {
    if (!this.#current)
      return text(
        503,
        this.#loadedBefore
          ? 'the extension has ended; it starts again after a second, or when its files change'
          : 'the extension has not been loaded yet',
      )
    try {
      return await this.#current.handle(request)
    } catch (err) {
      return text(500, messageOf(err))
    }
  }

  /** Loads the extension for the first time. */
  start(): void {
    this.#savedAt = this.#options.clock.now()
    this.#begin()
  }

  /** Schedules a reload after a file was saved, created or deleted. */
  changed(): void {
    if (this.#closed) return
    const { clock } = this.#options
    this.#savedAt ??= clock.now()
    this.#pending?.cancel()
    const wait = Math.max(0, Math.min(QuietTime, this.#savedAt + DelayLimit - clock.now()))
    this.#pending = clock.schedule(wait, () => this.#begin())
  }

  /** Waits a limited time for pending calls, then ends the processes. */
  async close(): Promise<void> {
    this.#closed = true
    this.#pending?.cancel()
    this.#loading?.abort()
    this.#retire(this.#current, CloseTimeLimit)
    await Promise.all(this.#retiring)
  }

  #begin(): void {
    this.#pending?.cancel()
    this.#pending = undefined
    // A load in progress is outdated.
    this.#loading?.abort()
    this.#loading = new AbortController()
    void this.#load(this.#savedAt ?? this.#options.clock.now(), this.#loading.signal)
    this.#savedAt = undefined
  }

  async #load(savedAt: number, signal: AbortSignal): Promise<void> {
    const { clock, load, onReload, watch } = this.#options
    let extension: RunningExtension
    try {
      extension = await load(signal)
    } catch (err) {
      if (signal.aborted) return
      if (err instanceof LoadError) watch(err.files)
      return onReload({ kind: 'notLoaded', problem: messageOf(err), keepsOld: this.#current !== undefined })
    }
    if (signal.aborted) return this.#retire(extension)
    const previous = this.#current
    this.#current = extension
    watch(extension.files)
    onReload({ kind: 'loaded', extension, took: clock.now() - savedAt, first: !this.#loadedBefore })
    this.#loadedBefore = true
    this.#retire(previous)
    void extension.ended.then((why) => this.#ended(extension, why))
  }

  /**
   * Handles the end of the process that serves calls, for example because a handler ended it. Loads the extension again after `RestartDelay`,
   * or with a reload that is already scheduled.
   */
  #ended(extension: RunningExtension, why: string): void {
    if (this.#current !== extension || this.#closed) return
    this.#current = undefined
    this.#options.onReload({ kind: 'ended', why })
    this.#pending ??= this.#options.clock.schedule(RestartDelay, () => this.#begin())
  }

  #retire(extension: RunningExtension | undefined, timeout?: number): void {
    if (!extension) return
    const done = extension.retire(timeout).finally(() => this.#retiring.delete(done))
    this.#retiring.add(done)
  }
}

const text = (status: number, message: string): Response => new Response(`${message}\n`, { status })
