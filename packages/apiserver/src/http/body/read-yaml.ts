/**
 * YAML from outside. Reading it is dear: a body of the size that is let in can keep a processor busy for many seconds. What is
 * long is therefore read in a thread, which is stopped when it takes too long or too much memory, while everybody else is served.
 */
import { Worker } from 'node:worker_threads'
import { type Clock, seconds } from '@capstan/kube'
import { readYAML, type YAMLTask } from './yaml.ts'

export type YAMLOutcome = { readonly value: unknown } | { readonly error: string }

/** Shorter texts take less time than starting a thread does. */
const MaxInline = 8 * 1024
const MaxThreads = 2
const MaxTime = seconds(10)
const MaxHeapMegabytes = 512

export class YAMLReader {
  readonly #clock: Clock
  #threads = 0
  readonly #waiting: (() => void)[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @throws Error that says what is wrong with the text, in Go's wording where there is one */
  read(text: string): Promise<unknown> {
    return this.#ask({ text, wanted: 'value' })
  }

  /** Of a text that can be read, the keys that mappings have more than once, each in a line of Go's wording. */
  async duplicates(text: string): Promise<readonly string[]> {
    return (await this.#ask({ text, wanted: 'duplicates' })) as readonly string[]
  }

  async #ask(task: YAMLTask): Promise<unknown> {
    if (task.text.length <= MaxInline) return readYAML(task)
    while (this.#threads >= MaxThreads) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#threads++
    const outcome = await inThread(task, this.#clock)
    this.#threads--
    this.#waiting.shift()?.()
    if ('error' in outcome) throw new Error(outcome.error)
    return outcome.value
  }
}

function inThread(task: YAMLTask, clock: Clock): Promise<YAMLOutcome> {
  return new Promise((resolve) => {
    const worker = new Worker(new URL('./yaml-worker.ts', import.meta.url), {
      workerData: task,
      resourceLimits: { maxOldGenerationSizeMb: MaxHeapMegabytes },
    })
    const end = (outcome: YAMLOutcome) => {
      timer.cancel()
      void worker.terminate()
      resolve(outcome)
    }
    const timer = clock.schedule(MaxTime, () => end({ error: 'yaml: document takes too long to read' }))
    worker.once('message', end)
    worker.once('error', () => end({ error: 'yaml: document takes too much memory to read' }))
    worker.once('exit', () => end({ error: 'yaml: document cannot be read' }))
  })
}
