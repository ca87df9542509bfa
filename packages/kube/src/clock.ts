/** Source of time and timers, passed as an argument: `systemClock` in programs, a `VirtualClock` in tests, which need not wait. */
export interface Clock {
  /** Milliseconds since the Unix epoch. An administrator or NTP may set it back or ahead: measure durations with `elapsed`. */
  now(): number
  /** Whole milliseconds since a moment that is fixed for the process. Never decreases, even when the clock is set back. */
  elapsed(): number
  /** Calls `callback` once, `after` milliseconds from now; `systemClock` calls it after 24 days at the latest. */
  schedule(after: number, callback: () => void): Timer
  /**
   * Returns a promise to await when work has kept timers and sockets waiting for too long, otherwise `undefined`. Call it before each piece
   * of long work, and again after the wait, because another waiting task may have used up the turn of the event loop. Absent on clocks whose
   * time does not pass during work.
   */
  yieldIfDue?(): Promise<void> | undefined
}

export interface Timer {
  cancel(): void
}

export const seconds = (n: number): number => n * 1000
export const minutes = (n: number): number => n * 60_000
export const hours = (n: number): number => n * 3_600_000

/** Formats a time for the Kubernetes API: RFC 3339, UTC, whole seconds. */
export function timestamp(ms: number): string {
  const second = Math.floor(ms / 1000)
  // A busy server writes the same second thousands of times, and formatting a date took 4 % of the time of a create.
  if (second !== lastTimestamp.second) lastTimestamp = { second, text: new Date(ms).toISOString().replace(/\.\d+/, '') }
  return lastTimestamp.text
}
let lastTimestamp = { second: NaN, text: '' }

/**
 * Returns the milliseconds until `length` has passed since the recorded time `since`; 0 or less when it has passed. If `since` is later
 * than `now` by more than `length`, for example because the clock was set back, the period counts as over, so that a wait is never longer
 * than twice `length`.
 */
export const timeLeft = ({ since, length, now }: { since: number; length: number; now: number }): number =>
  since - now > length ? 0 : since + length - now

/** Resolves after `ms`; rejects with the signal's reason when aborted first. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const timer = clock.schedule(ms, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    const abort = () => {
      timer.cancel()
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', abort, { once: true })
  })
}

/**
 * Returns a promise to await when work has kept timers and sockets waiting for too long, otherwise `undefined`. Do not await `undefined`, so
 * that short work runs in the order of its calls.
 */
export function pauseIfDue(clock: Clock): Promise<void> | undefined {
  // Checked again after the wait, because another waiting task may have used up the turn.
  return clock.yieldIfDue?.()?.then(() => pauseIfDue(clock))
}

/**
 * Long work that yields between its pieces; see `inPieces` and `atOnce`. Declare its generator function outside of other functions: creating
 * a generator function takes a microsecond, ten times as long as a call.
 */
export type Work<T> = Generator<undefined, T>

/**
 * Runs `work` to its end. At a yield of `work`, timers and sockets run first if they have waited for too long. Returns a promise only if
 * there is such a pause, so that short work runs in the order of its calls.
 */
export function inPieces<T>(clock: Clock, work: Work<T>): T | Promise<T> {
  for (;;) {
    const piece = work.next()
    if (piece.done) return piece.value
    const pause = pauseIfDue(clock)
    if (pause) return pause.then(() => inPieces(clock, work))
  }
}

/** Like `inPieces`, for a list that may be complete already. */
export const listInPieces = <T>(clock: Clock, work: T[] | Work<T[]>): T[] | Promise<T[]> =>
  Array.isArray(work) ? work : inPieces(clock, work)

/** Runs `work` to its end without pauses. */
export function atOnce<T>(work: Work<T>): T {
  for (;;) {
    const piece = work.next()
    if (piece.done) return piece.value
  }
}

/** Number of elements of a list or map that long work processes in one piece; `each` and `sorting` use a multiple of it. */
export const PieceSize = 256

/** Calls `act` with each element; yields after each piece. */
export function* eachInPieces<T>(elements: Iterable<T>, act: (element: T) => void): Work<void> {
  let count = 0
  for (const element of elements) {
    act(element)
    if (++count % PieceSize === 0) yield
  }
}

/** Remaining part of long work; `undefined` when the work is done, so that short work needs no generator. */
export type RemainingWork = Work<void> | undefined

/** Number of elements, of all lists together, that `each` has processed in the current piece. */
let steps = 0
const MaxSteps = 4 * PieceSize

/**
 * Calls `act` with each element. When the current piece is full, stops and returns the remaining work. `act` may call `each` for nested
 * lists.
 */
export function each<T>(elements: readonly T[], act: (element: T) => RemainingWork): RemainingWork {
  for (let index = 0; index < elements.length; index++) {
    if (++steps > MaxSteps) return eachFrom(elements, index, act)
    const rest = act(elements[index]!)
    if (rest) return eachFrom(elements, index + 1, act, rest)
  }
  return undefined
}

function* eachFrom<T>(
  elements: readonly T[],
  from: number,
  act: (element: T) => RemainingWork,
  first?: RemainingWork,
): Work<void> {
  if (first) yield* first
  for (let index = from; index < elements.length; index++) {
    if (++steps > MaxSteps) {
      yield
      steps = 0
    }
    const rest = act(elements[index]!)
    if (rest) yield* rest
  }
}

/** Like `each`, but calls `act` only when the returned work runs. */
export function* visiting<T>(elements: readonly T[], act: (element: T) => RemainingWork): Work<void> {
  const rest = each(elements, act)
  if (rest) yield* rest
}

/** Runs `act` after the remaining part of earlier work, if any. */
export function after(rest: RemainingWork, act: () => RemainingWork): RemainingWork {
  return rest ? continueWith(rest, act) : act()
}

function* continueWith(first: Work<void>, act: () => RemainingWork): Work<void> {
  yield* first
  const rest = act()
  if (rest) yield* rest
}

/** Returns work that calls `start`, completes the remaining work that `start` returns, and then returns a result. */
export function asWork(start: () => RemainingWork): Work<void>
export function asWork<T>(start: () => RemainingWork, result: () => T): Work<T>
export function* asWork<T>(start: () => RemainingWork, result?: () => T): Work<T | undefined> {
  steps = 0
  const rest = start()
  if (rest) yield* rest
  return result?.()
}

/** Sorts a list in place, in pieces, and returns it. Without `compare`, the list must contain strings. */
export function* sorting<T>(list: T[], compare?: (a: T, b: T) => number): Work<T[]> {
  if (list.length <= SortedAtOnce) return list.sort(compare)
  const middle = list.length >> 1
  const left = yield* sorting(list.slice(0, middle), compare)
  yield
  const right = yield* sorting(list.slice(middle), compare)
  yield
  const order = compare ?? compareTexts
  let [l, r] = [0, 0]
  for (let index = 0; index < list.length; index++) {
    list[index] = r === right.length || (l < left.length && order(left[l]!, right[r]!) <= 0) ? left[l++]! : right[r++]!
    if (index % SortedAtOnce === 0) yield
  }
  return list
}

const compareTexts = (a: unknown, b: unknown): number =>
  (a as string) < (b as string) ? -1 : (a as string) > (b as string) ? 1 : 0
/** Number of elements that are sorted in one piece. */
export const SortedAtOnce = 16 * PieceSize

/** Calls `callback` in the next turn of the event loop. Browsers have no setImmediate. */
const nextTurn: (callback: () => void) => unknown = globalThis.setImmediate ?? setTimeout

/** Milliseconds of work in one turn of the event loop, after which further work waits for the next turn. */
const LongestTurn = 10

/**
 * Maximum pause after work that cannot be divided, in milliseconds: enough for a handshake, or for several small requests. Up to this
 * maximum, a pause takes a tenth of the time of the work.
 */
const LongestPause = 10

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => Math.floor(performance.now()),
  schedule(after, callback) {
    // Node replaces a delay above 2^31-1 ms (24 days) by 1 ms. Such a timer fires after 24 days instead.
    const timer = setTimeout(callback, Math.min(after, 2 ** 31 - 1))
    return { cancel: () => clearTimeout(timer) }
  },
  // One yielder for the process, because the process has one event loop.
  yieldIfDue: eventLoopYielder({
    now: () => performance.now(),
    turnNumber: turnNumberOf(),
    turn: () => new Promise((resolve) => void nextTurn(resolve)),
    pause: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
  }),
}

interface EventLoop {
  now(): number
  /** Returns the number of the current turn. `undefined` where turns are not counted, as in browsers. */
  readonly turnNumber: (() => number) | undefined
  /** Resolves in the next turn. */
  turn(): Promise<void>
  /** Resolves after `ms`. */
  pause(ms: number): Promise<void>
}

/** Returns a function for the number of turns of this thread's event loop; `undefined` in browsers, which do not count turns. */
function turnNumberOf(): (() => number) | undefined {
  const timing = (performance as { nodeTiming?: { uvMetricsInfo?: { loopCount: number } } }).nodeTiming
  return timing?.uvMetricsInfo ? () => timing.uvMetricsInfo!.loopCount : undefined
}

/** Milliseconds after which a call reads the turn's number again. A reading takes half a microsecond, which is too long for every call. */
const TurnCheckPeriod = 0.2

/**
 * Returns a `yieldIfDue` for an event loop.
 *
 * Where turns are counted, a call reads the number of the turn if the last reading is `TurnCheckPeriod` ago, or if the time of the turn
 * seems to be used up. The time is measured from the first call in a turn that reads its number. A callback for the next turn is scheduled
 * only when work waits for that turn, because each scheduled callback causes another turn, in which few sockets are ready.
 *
 * Where turns are not counted, the first call in each turn schedules the callback, and the time is measured from that call.
 */
export function eventLoopYielder(loop: EventLoop): () => Promise<void> | undefined {
  const { turnNumber } = loop
  let number = turnNumber?.()
  let since = loop.now()
  let checked = since
  /** Resolves in the next turn; `undefined` while no callback for the next turn is scheduled. */
  let scheduledTurn: Promise<void> | undefined
  let hasWaiter = false
  const startTurn = () => {
    number = turnNumber?.()
    since = checked = loop.now()
  }
  const endOfTurn = (): Promise<void> =>
    (scheduledTurn ??= loop.turn().then(() => {
      scheduledTurn = undefined
      hasWaiter = false
      startTurn()
    }))
  return () => {
    const now = loop.now()
    if (!turnNumber) {
      if (!scheduledTurn) startTurn()
      void endOfTurn()
    } else if (now - checked >= TurnCheckPeriod || now - since >= LongestTurn) {
      checked = now
      if (turnNumber() !== number) startTurn()
    }
    const spent = now - since
    if (spent < LongestTurn) return undefined
    // The first task that waits in a turn is the task that used up the time of the turn. If this task took long, one turn is too short for
    // requests that need several turns, such as the requests of new connections.
    const needsPause = !hasWaiter && spent >= 2 * LongestTurn
    hasWaiter = true
    return needsPause ? endOfTurn().then(() => loop.pause(Math.min(spent / 10, LongestPause))) : endOfTurn()
  }
}

interface ScheduledCallback {
  /** Value of `elapsed` at which the callback runs. */
  readonly at: number
  readonly callback: () => void
}

/** A clock that advances only when the test advances it. Callbacks run in order of their time, then of their scheduling. */
export class VirtualClock implements Clock {
  /** Time at which `elapsed` was zero. */
  #start: number
  #elapsed = 0
  #due: ScheduledCallback[] = []

  constructor(start: number = Date.UTC(2026, 0, 1)) {
    this.#start = start
  }

  now(): number {
    return this.#start + this.#elapsed
  }

  elapsed(): number {
    return this.#elapsed
  }

  /** Sets the time ahead by `ms`, or back by a negative `ms`. Callbacks keep their delay. */
  shift(ms: number): void {
    this.#start += ms
  }

  schedule(after: number, callback: () => void): Timer {
    const due: ScheduledCallback = { at: this.#elapsed + Math.max(0, after), callback }
    let index = this.#due.length
    while (index > 0 && this.#due[index - 1]!.at > due.at) index--
    this.#due.splice(index, 0, due)
    return {
      cancel: () => {
        const position = this.#due.indexOf(due)
        if (position >= 0) this.#due.splice(position, 1)
      },
    }
  }

  /** Time of the next callback; `undefined` when none is scheduled. */
  get nextDue(): number | undefined {
    return this.#due[0] && this.#start + this.#due[0].at
  }

  /** Advances to the next callback due by `time`, runs it and returns true. Without such a callback, advances to `time` and returns false. */
  step(time: number): boolean {
    const next = this.#due[0]
    const until = time - this.#start
    if (!next || next.at > until) {
      this.#elapsed = Math.max(this.#elapsed, until)
      return false
    }
    this.#due.shift()
    this.#elapsed = Math.max(this.#elapsed, next.at)
    next.callback()
    return true
  }
}
