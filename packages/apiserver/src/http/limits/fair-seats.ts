/**
 * Seats for concurrent requests, shared by priority level and, within a level, by flow: the flow with the fewest seats gets the next seat.
 * A small version of upstream's API Priority and Fairness (k8s.io/apiserver/pkg/util/flowcontrol): the shares are the same, but each flow
 * has its own queue instead of shared queues, and free seats are borrowed immediately.
 */
import type { Clock } from '@capstan/kube'
import { TooManyRequests } from '../exchange.ts'

/** Releases a seat. */
export type Release = () => void

export interface LevelShare {
  /** Size of the level's part of all seats, relative to `shares` of the other levels. */
  readonly shares: number
  /** Fraction (0 to 1) of the seats of this level that other levels may borrow while this level does not use them. */
  readonly lendable: number
}

/** Maximum number of waiting requests of one flow. Upstream: most flows have six queues of 50 requests each (shuffle sharding). */
const MaxWaiting = 300

interface Waiter {
  readonly flow: string
  readonly seated: (release: Release) => void
}

interface Level {
  /** Free seats that belong to this level. */
  free: number
  /** Maximum seats of one flow: 7/8 of the seats that the level can get, rounded down, to leave seats for other flows; at least 1. */
  readonly maxPerFlow: number
  /** Used seats, by flow. */
  readonly seatsByFlow: Map<string, number>
  /** Waiting requests by flow, in order of arrival. */
  readonly waiting: Map<string, Waiter[]>
}

export class FairSeats<Name extends string> {
  readonly #levels = new Map<Name, Level>()
  readonly #clock: Clock
  readonly #longestWait: number
  /** Free seats that any level may borrow. */
  #common = 0

  /**
   * `seats` is the number of all seats; the part of each level is rounded up. `longestWait` is the maximum time in milliseconds
   * that a request waits.
   */
  constructor(levels: { readonly [name in Name]: LevelShare }, seats: number, clock: Clock, longestWait: number) {
    this.#clock = clock
    this.#longestWait = longestWait
    const levelShares = Object.values<LevelShare>(levels)
    const totalShares = levelShares.reduce((sum, level) => sum + level.shares, 0)
    const nominal = ({ shares }: LevelShare) => Math.ceil((seats * shares) / totalShares)
    const lent = (level: LevelShare) => Math.floor(nominal(level) * level.lendable)
    this.#common = levelShares.reduce((sum, level) => sum + lent(level), 0)
    for (const [name, level] of Object.entries<LevelShare>(levels)) {
      const ownSeats = nominal(level) - lent(level)
      const maxPerFlow = Math.max(1, Math.floor(((ownSeats + this.#common) * 7) / 8))
      this.#levels.set(name as Name, { free: ownSeats, maxPerFlow, seatsByFlow: new Map(), waiting: new Map() })
    }
  }

  /**
   * Takes a seat. `end` returns a signal for the end of the request; it is called only when the request has to wait.
   * @throws TooManyRequests when too many requests of the flow wait, no seat is free in time, or the request ends first
   */
  take(name: Name, flow: string, end: () => AbortSignal): Release | Promise<Release> {
    const level = this.#levels.get(name)!
    const waiting = level.waiting.get(flow)
    if (!waiting && this.#canTakeSeat(level, flow)) {
      if (level.free > 0) return this.#assignSeat(level, flow, 'own')
      if (this.#common > 0) return this.#assignSeat(level, flow, 'common')
    }
    if (waiting && waiting.length >= MaxWaiting) throw new TooManyRequests()
    return this.#wait(level, flow, end())
  }

  #canTakeSeat(level: Level, flow: string): boolean {
    return (level.seatsByFlow.get(flow) ?? 0) < level.maxPerFlow
  }

  #assignSeat(level: Level, flow: string, source: 'own' | 'common'): Release {
    if (source === 'own') level.free--
    else this.#common--
    level.seatsByFlow.set(flow, (level.seatsByFlow.get(flow) ?? 0) + 1)
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      const remaining = level.seatsByFlow.get(flow)! - 1
      if (remaining > 0) level.seatsByFlow.set(flow, remaining)
      else level.seatsByFlow.delete(flow)
      if (source === 'own') level.free++
      else this.#common++
      this.#seatWaiting(level)
    }
  }

  /**
   * Assigns free seats to waiting requests. Requests of the level `first` come first, because the free seat may belong to that level.
   */
  #seatWaiting(first: Level): void {
    for (const level of [first, ...this.#levels.values()]) {
      while (level.waiting.size > 0 && (level.free > 0 || this.#common > 0)) {
        const waiter = this.#nextWaiter(level)
        if (!waiter) break
        waiter.seated(this.#assignSeat(level, waiter.flow, level.free > 0 ? 'own' : 'common'))
      }
    }
  }

  /**
   * Removes and returns the first waiting request of the flow with the fewest seats; `undefined` if each waiting flow has its maximum of
   * seats. Flows with equally many seats take turns.
   */
  #nextWaiter(level: Level): Waiter | undefined {
    let next: string | undefined
    let fewest = level.maxPerFlow
    for (const flow of level.waiting.keys()) {
      const taken = level.seatsByFlow.get(flow) ?? 0
      if (taken < fewest) [next, fewest] = [flow, taken]
    }
    if (next === undefined) return undefined
    const waiters = level.waiting.get(next)!
    const waiter = waiters.shift()
    // The flow moves to the end of the queue.
    level.waiting.delete(next)
    if (waiters.length > 0) level.waiting.set(next, waiters)
    return waiter
  }

  #wait(level: Level, flow: string, signal: AbortSignal): Promise<Release> {
    if (signal.aborted) return Promise.reject(new TooManyRequests())
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
        const index = waiters?.indexOf(waiter) ?? -1
        if (index >= 0) waiters!.splice(index, 1)
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
