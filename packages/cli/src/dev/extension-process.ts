/** Runs extensions in child processes, one for each load, because Node caches loaded modules. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Clock } from '@capstan/kube'
import { seconds } from '@capstan/kube'
import type { AnnouncedHandler, FromChild, ToChild } from './protocol.ts'

/** A loaded extension. */
export interface RunningExtension {
  readonly name: string
  readonly handlers: readonly AnnouncedHandler[]
  /**
   * Files to watch: the extension's own modules, without those of installed packages and of Capstan. They include missing modules that a
   * relative import names.
   */
  readonly files: readonly string[]
  /** Handles a request. @throws Error when the process ends before the response */
  handle(request: Request): Promise<Response>
  /** Resolves with the reason when the process has ended. */
  readonly ended: Promise<string>
  /**
   * Waits at most `timeout` (default: 31,000) milliseconds for pending requests, then ends the process. Do not call `handle`
   * afterwards.
   */
  retire(timeout?: number): Promise<void>
}

/** Error for a module that cannot be loaded as an extension. */
export class LoadError extends Error {
  override readonly name = 'LoadError'
  /** Files to watch, because a change of them may correct the problem. */
  readonly files: readonly string[]

  constructor(problem: string, files: readonly string[]) {
    super(problem)
    this.files = files
  }
}

export interface ExtensionProcessOptions {
  readonly clock: Clock
  /** Called with each log entry of the extension. */
  log(entry: Extract<FromChild, { kind: 'log' }>): void
  /** Called with each line of stdout or stderr. */
  printed(line: string): void
}

/** Default maximum wait for pending calls, in milliseconds: longer than the timeout of any handler. */
const callTimeLimit = seconds(31)
const loadTimeLimit = seconds(10)
const endTimeLimit = seconds(2)
const loadTimeoutText = `it did not load within ${loadTimeLimit / 1000} s: expected a module that exports an extension, and does not serve it`

const program = fileURLToPath(new URL('../../bin/dev-child.js', import.meta.url))

/**
 * Starts extension processes. After the first load, keeps a spare process started, so that the next load takes only the time of the author's
 * own modules.
 */
export class ExtensionProcesses {
  readonly #options: ExtensionProcessOptions
  readonly #alive = new Set<Child>()
  #spare: Child | undefined
  #closed = false

  constructor(options: ExtensionProcessOptions) {
    this.#options = options
  }

  /** Loads a module. @throws LoadError with the problem of the module; the reason of `signal` when it aborts */
  async load(file: string, signal: AbortSignal): Promise<RunningExtension> {
    const child = this.#spare ?? this.#start()
    this.#spare = undefined
    const stop = () => child.kill()
    signal.addEventListener('abort', stop, { once: true })
    try {
      signal.throwIfAborted()
      return await child.load(file)
    } catch (err) {
      child.kill()
      signal.throwIfAborted()
      throw err
    } finally {
      signal.removeEventListener('abort', stop)
      if (!this.#closed) this.#spare ??= this.#start()
    }
  }

  /** Ends all processes, without waiting for pending calls. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#alive].map((child) => child.end()))
  }

  #start(): Child {
    const child = new Child(this.#options)
    this.#alive.add(child)
    void child.ended.then(() => {
      this.#alive.delete(child)
      if (this.#spare === child) this.#spare = undefined
    })
    return child
  }
}

interface Call {
  resolve(response: Response): void
  reject(why: Error): void
}

class Child {
  readonly ended: Promise<string>
  readonly #clock: Clock
  readonly #process: ChildProcess
  readonly #calls = new Map<number, Call>()
  #loading: { resolve(message: Extract<FromChild, { kind: 'loaded' }>): void; reject(why: Error): void } | undefined
  #lastCall = 0
  #idle: (() => void) | undefined

  constructor({ clock, log, printed }: ExtensionProcessOptions) {
    this.#clock = clock
    // Detached, so that Ctrl-C reaches only the parent: the child handles calls until the management cluster has stopped, and exits when
    // its parent ends.
    this.#process = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], detached: true })
    for (const stream of [this.#process.stdout!, this.#process.stderr!]) createInterface({ input: stream }).on('line', printed)
    this.ended = new Promise((resolve) => {
      this.#process.once('error', (err) => resolve(err.message))
      this.#process.once('exit', (code, signal) => resolve(signal ? `killed by ${signal}` : `exit code ${code}`))
    })
    void this.ended.then((why) => {
      const err = new Error(`the process of the extension ended: ${why}`)
      this.#loading?.reject(err)
      for (const call of this.#calls.values()) call.reject(err)
    })
    this.#process.on('message', (message: FromChild) => {
      if (message.kind === 'log') log(message)
      else if (message.kind === 'answered') this.#completeCall(message)
      else if (message.kind === 'loaded') this.#loading?.resolve(message)
      else this.#loading?.reject(new LoadError(message.problem, message.files))
    })
  }

  async load(file: string): Promise<RunningExtension> {
    const limit = this.#clock.schedule(loadTimeLimit, () => this.#loading?.reject(new LoadError(loadTimeoutText, [file])))
    try {
      const { name, handlers, files } = await new Promise<Extract<FromChild, { kind: 'loaded' }>>((resolve, reject) => {
        this.#loading = { resolve, reject }
        this.#send({ kind: 'load', file })
      })
      const [ended, handle, retire] = [this.ended, this.#handle.bind(this), this.#retire.bind(this)]
      return { name, handlers, files, ended, handle, retire }
    } catch (err) {
      throw err instanceof LoadError ? err : new LoadError((err as Error).message, [file])
    } finally {
      limit.cancel()
    }
  }

  async #handle(request: Request): Promise<Response> {
    if (!this.#process.connected) throw new Error('the process of the extension has ended')
    const id = ++this.#lastCall
    const { method, url, headers, signal } = request
    const { promise, ...call } = Promise.withResolvers<Response>()
    // The process may end while the body is read: the rejection then has no other handler yet.
    promise.catch(() => {})
    // Recorded before the body is read, because `retire` waits for recorded calls.
    this.#calls.set(id, call)
    const abort = () => this.#send({ kind: 'abort', id })
    try {
      const body = await request.text()
      signal.addEventListener('abort', abort, { once: true })
      this.#send({ kind: 'call', id, method, url, headers: [...headers], body })
      return await promise
    } finally {
      signal.removeEventListener('abort', abort)
      this.#calls.delete(id)
      if (this.#calls.size === 0) this.#idle?.()
    }
  }

  #completeCall({ id, status, headers, body }: Extract<FromChild, { kind: 'answered' }>): void {
    const fields = headers.map(([name, value]) => [name, value] as [string, string])
    this.#calls.get(id)?.resolve(new Response(body, { status, headers: fields }))
  }

  async #retire(timeout = callTimeLimit): Promise<void> {
    await new Promise<void>((resolve) => {
      if (this.#calls.size === 0) return resolve()
      const limit = this.#clock.schedule(timeout, resolve)
      this.#idle = () => {
        limit.cancel()
        resolve()
      }
    })
    await this.end()
  }

  /** Disconnects, so that the process exits; kills it after `endTimeLimit`. Resolves when it has ended. */
  async end(): Promise<void> {
    if (this.#process.connected) this.#process.disconnect()
    const limit = this.#clock.schedule(endTimeLimit, () => this.kill())
    await this.ended
    limit.cancel()
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }

  /** Sends a message; does nothing if the process has ended, which `ended` reports. */
  #send(message: ToChild): void {
    if (this.#process.connected) this.#process.send(message, () => {})
  }
}
