/** Memory for the bodies of all requests together. */
import type { Requester } from './http/exchange.ts'

/** The part of a budget that one request uses. */
export interface BodyShare {
  /** Takes part of the budget for the user of the request; returns false when the user's share is used up. */
  take(bytes: number, requester?: Requester): boolean
  /** Returns the taken part to the budget. */
  free(): void
}

/**
 * Budget for the bodies of all requests together. A priority level must not use more bytes than are then free in the whole budget, and a user
 * not more than half of the free bytes. So a part of the budget is always left for other levels and users. Exempt requests are never rejected.
 */
export class BodyBudget {
  #left: number
  /** Bytes in use, by level and by user of a level. */
  readonly #used = new Map<string, number>()

  constructor(bytes: number) {
    this.#left = bytes
  }

  /** Share of one request. */
  share(): BodyShare {
    const taken = new Map<string, number>()
    const add = (to: Map<string, number>, key: string, bytes: number) => {
      const sum = (to.get(key) ?? 0) + bytes
      if (sum > 0) to.set(key, sum)
      else to.delete(key)
    }
    return {
      take: (bytes, requester) => {
        if (requester?.isExempt) return true
        const [level, flow] = [requester?.level ?? '', `${requester?.level ?? ''}/${requester?.flow ?? ''}`]
        const left = this.#left - bytes
        if (left < 0 || this.#of(level) + bytes > left || this.#of(flow) + bytes > left / 2) return false
        this.#left = left
        for (const key of [level, flow]) {
          add(this.#used, key, bytes)
          add(taken, key, bytes)
        }
        return true
      },
      free: () => {
        // Each byte is counted twice, for the level and for the user.
        for (const [key, bytes] of taken) {
          add(this.#used, key, -bytes)
          this.#left += bytes / 2
        }
        taken.clear()
      },
    }
  }

  #of(key: string): number {
    return this.#used.get(key) ?? 0
  }
}
