/** Limits the memory that the bodies of requests use together. */
import type { Requester } from './http/exchange.ts'

/** The part of a budget that one request uses. */
export interface BodyShare {
  /**
   * Takes bytes from the budget. Returns false, and takes nothing, if the requester's user or priority level would exceed its limit. Requests
   * without `requester` count together, as those of one user in a level of its own.
   */
  take(bytes: number, requester?: Requester): boolean
  /** Returns all taken bytes to the budget. */
  free(): void
}

/**
 * Budget for the bodies of requests together. After each take, the priority level of the request may use at most as many bytes as are still
 * free, and its user, within this level, at most half as many. So a part of the budget always remains for other levels and users. Exempt
 * requests (health checks, watches, superusers) are neither counted nor rejected.
 */
export class BodyBudget {
  #free: number
  /** Bytes in use, by level and by user of a level. */
  readonly #used = new Map<string, number>()

  constructor(bytes: number) {
    this.#free = bytes
  }

  /** Returns the share of one request. */
  share(): BodyShare {
    const takenBytes = new Map<string, number>()
    const add = (bytesByKey: Map<string, number>, key: string, bytes: number) => {
      const sum = (bytesByKey.get(key) ?? 0) + bytes
      if (sum > 0) bytesByKey.set(key, sum)
      else bytesByKey.delete(key)
    }
    return {
      take: (bytes, requester) => {
        if (requester?.isExempt) return true
        const [level, flow] = [requester?.level ?? '', `${requester?.level ?? ''}/${requester?.flow ?? ''}`]
        const remaining = this.#free - bytes
        if (remaining < 0 || this.#usedBy(level) + bytes > remaining || this.#usedBy(flow) + bytes > remaining / 2) return false
        this.#free = remaining
        for (const key of [level, flow]) {
          add(this.#used, key, bytes)
          add(takenBytes, key, bytes)
        }
        return true
      },
      free: () => {
        // Each byte is counted twice, for the level and for the user.
        for (const [key, bytes] of takenBytes) {
          add(this.#used, key, -bytes)
          this.#free += bytes / 2
        }
        takenBytes.clear()
      },
    }
  }

  #usedBy(key: string): number {
    return this.#used.get(key) ?? 0
  }
}
