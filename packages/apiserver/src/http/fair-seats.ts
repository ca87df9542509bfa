/**
 * Seats for requests, shared out by level of importance and, within a level, by flow: whoever has fewest of them gets the next.
 * In the small what upstream's API priority and fairness does (k8s.io/apiserver/pkg/util/flowcontrol): the shares are the same,
 * but flows have queues of their own instead of a hand of shared ones, and seats are borrowed the moment they are free.
 */
import type { Clock } from '@capstan/kube'
import { TooManyRequests } from './exchange.ts'

/** Gives a seat back. */
export type Release = () => void

export interface LevelShare {
  readonly shares: number
  /** The part of its seats that other levels may sit on while nobody of this one does. */
  readonly lendable: number
}

/** Waiting requests of one flow at most. Upstream: a hand of six queues of 50. */
const MaxWaiting = 300

interface Waiter {
  readonly flow: string
  readonly seated: (release: Release) => void
}

interface Level {
  /** Seats of its own that are free. */
  free: number
  /** Seats that one flow may have: never quite all that the level can get, so that another one finds a seat at once. */
  readonly most: number
  /** Seats taken, by flow. */
  readonly taken: Map<string, number>
  /** In order of arrival. */
  readonly waiting: Map<string, Waiter[]>
}

export class FairSeats<Name extends string> {
  readonly #levels = new Map<Name, Level>()
  readonly #clock: Clock
  readonly #longestWait: number
  /** Free seats that whoever comes may borrow. */
  #common = 0

  constructor(levels: { readonly [name in Name]: LevelShare }, seats: number, clock: Clock, longestWait: number) {
    this.#clock = clock
    this.#longestWait = longestWait
    const shares = Object.values<LevelShare>(levels)
    const all = shares.reduce((sum, level) => sum + level.shares, 0)
    const nominal = ({ shares }: LevelShare) => Math.ceil((seats * shares) / all)
    const lent = (level: LevelShare) => Math.floor(nominal(level) * level.lendable)
    this.#common = shares.reduce((sum, level) => sum + lent(level), 0)
    for (const [name, level] of Object.entries<LevelShare>(levels)) {
      const own = nominal(level) - lent(level)
      const most = Math.max(1, Math.floor(((own + this.#common) * 7) / 8))
      this.#levels.set(name as Name, { free: own, most, taken: new Map(), waiting: new Map() })
    }
  }

  /** @throws TooManyRequests when too many wait already, or the seat does not come in time */
  take(name: Name, flow: string, signal: AbortSignal): Release | Promise<Release> {
    const level = this.#levels.get(name)!
    const waiting = level.waiting.get(flow)
    if (!waiting && this.#mayHaveMore(level, flow)) {
      if (level.free > 0) return this.#seated(level, flow, 'own')
      if (this.#common > 0) return this.#seated(level, flow, 'common')
    }
    if (waiting && waiting.length >= MaxWaiting) throw new TooManyRequests()
    return this.#wait(level, flow, signal)
  }

  #mayHaveMore(level: Level, flow: string): boolean {
    return (level.taken.get(flow) ?? 0) < level.most
  }

  #seated(level: Level, flow: string, of: 'own' | 'common'): Release {
    if (of === 'own') level.free--
    else this.#common--
    level.taken.set(flow, (level.taken.get(flow) ?? 0) + 1)
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      const left = level.taken.get(flow)! - 1
      if (left > 0) level.taken.set(flow, left)
      else level.taken.delete(flow)
      if (of === 'own') level.free++
      else this.#common++
      this.#seatNext(level)
    }
  }

  /** A seat is free, or a flow may have one more. Those of the same level come first, since the seat may be its own. */
  #seatNext(first: Level): void {
    for (const level of [first, ...this.#levels.values()]) {
      while (level.waiting.size > 0 && (level.free > 0 || this.#common > 0)) {
        const waiter = this.#nextOf(level)
        if (!waiter) break
        waiter.seated(this.#seated(level, waiter.flow, level.free > 0 ? 'own' : 'common'))
      }
    }
  }

  /** Of the flow that has fewest seats; among several, of the one that has waited longest. */
  #nextOf(level: Level): Waiter | undefined {
    let next: string | undefined
    let fewest = level.most
    for (const flow of level.waiting.keys()) {
      const taken = level.taken.get(flow) ?? 0
      if (taken < fewest) [next, fewest] = [flow, taken]
    }
    if (next === undefined) return undefined
    const waiters = level.waiting.get(next)!
    const waiter = waiters.shift()
    // The flow goes to the end of the line.
    level.waiting.delete(next)
    if (waiters.length > 0) level.waiting.set(next, waiters)
    return waiter
  }

  #wait(level: Level, flow: string, signal: AbortSignal): Promise<Release> {
    return new Promise((resolve, reject) => {
      const end = () => {
        timer.cancel()
        signal.removeEventListener('abort', leave)
      }
      const waiter: Waiter = {
        flow,
        seated(release) {
          end()
          resolve(release)
        },
      }
      const leave = () => {
        end()
        const waiters = level.waiting.get(flow)
        const at = waiters?.indexOf(waiter) ?? -1
        if (at >= 0) waiters!.splice(at, 1)
        if (waiters?.length === 0) level.waiting.delete(flow)
        reject(new TooManyRequests())
      }
      const timer = this.#clock.schedule(this.#longestWait, leave)
      signal.addEventListener('abort', leave, { once: true })
      const waiters = level.waiting.get(flow)
      if (waiters) waiters.push(waiter)
      else level.waiting.set(flow, [waiter])
    })
  }
}
