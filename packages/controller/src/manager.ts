/** Runs controllers together over one client and one set of informers. */
import type { Client, Clock, Logger, Random } from '@capstan/kube'
import { forkRandom } from '@capstan/kube'
import { Informers } from './cache.ts'
import type { Cache, Controller } from './controller.ts'
import { createEventRecorders } from './events.ts'
import type { Informer } from './informer.ts'
import { Loop } from './loop.ts'
import type { ControllerMetrics } from './metrics.ts'
import { createMetrics, registerGauge } from './metrics.ts'

export interface ManagerOptions {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly controllers: readonly Controller[]
}

export interface Manager {
  /** Resolves when every informer holds what the server has and passes have begun. */
  start(): Promise<void>
  /** Lets passes under way notice, and resolves when all watches have ended. Nothing is written after that. */
  stop(): Promise<void>
  readonly cache: Cache
  /** Nothing runs or could run before time passes or an event arrives. */
  readonly idle: boolean
  readonly started: boolean
  readonly metrics: ControllerMetrics
  /** For tests and `explain`: what every key waits for, as `controller namespace/name: reason`. */
  waiting(): readonly string[]
  /** For tests: every informer with the newest revision it knows. */
  informers(): readonly Informer[]
}

export function createManager({ client, clock, random, log, controllers }: ManagerOptions): Manager {
  const abort = new AbortController()
  const { signal } = abort
  const informers = new Informers({ client, clock, random: forkRandom(random), log, signal })
  // Names of objects do not depend on how many passes, events or reconnections there were before.
  const ids = forkRandom(random)
  const events = createEventRecorders({ client, clock, random: forkRandom(random), log })
  const metrics = createMetrics()
  for (const one of controllers) one.metrics?.(metrics.registry)
  const loops = controllers.map(
    (one) =>
      new Loop(one, { client, informers, clock, random, ids, log, events: events.of(`${one.name}-controller`), metrics, signal }),
  )
  registerGauge(metrics, 'capstan_keys_waiting', 'Keys whose last pass waits for something', () =>
    loops.map((loop) => [loop.controller.name, loop.waiting.size] as const),
  )
  let started = false

  return {
    cache: informers,
    metrics,
    get started() {
      return started
    },
    get idle() {
      return loops.every((loop) => loop.idle)
    },
    async start() {
      // Two controllers of one name would share metrics and logs, and nobody could tell them apart.
      const names = new Set<string>()
      for (const { controller } of loops) {
        if (names.has(controller.name)) throw new Error(`Cannot start: two controllers are named ${controller.name}`)
        names.add(controller.name)
      }
      await Promise.all(loops.map((loop) => loop.subscribe()))
      if (signal.aborted) return
      started = true
      for (const loop of loops) loop.run()
    },
    async stop() {
      started = false
      abort.abort()
      await informers.stopped()
      await events.flushed()
    },
    waiting: () => loops.flatMap((loop) => [...loop.waiting].map(([key, reason]) => `${loop.controller.name} ${key}: ${reason}`)),
    informers: () => informers.all(),
  }
}
