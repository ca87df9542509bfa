/** The managers of upstream's core and of Capstan's core, which are stopped and started together. */
export interface StoppableManagers {
  stop(): Promise<void>
  start(): Promise<void>
}

interface PendingCase {
  readonly act: () => Promise<void>
  readonly resolve: () => void
  readonly reject: (err: unknown) => void
}

/** Stops both managers once for several test cases, when every case has either requested the interruption or ended. */
export class Interruption {
  readonly #managers: StoppableManagers
  readonly #waiting: PendingCase[] = []
  #expected: number

  /** @param expected number of cases, each of which calls `join` or `leave` */
  constructor(managers: StoppableManagers, expected: number) {
    this.#managers = managers
    this.#expected = expected
  }

  /**
   * Requests the interruption. `act` runs while the managers are stopped. Resolves when the actions of all cases are done and the
   * managers run again. Rejects if `act` or the interruption fails.
   */
  join(act: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ act, resolve, reject })
      this.#interruptWhenComplete()
    })
  }

  /** Reports that a case ended without a request for the interruption. */
  leave(): void {
    this.#expected--
    this.#interruptWhenComplete()
  }

  #interruptWhenComplete(): void {
    if (this.#waiting.length === 0 || this.#waiting.length < this.#expected) return
    const joined = this.#waiting.splice(0)
    this.#expected -= joined.length
    void this.#interrupt(joined)
  }

  async #interrupt(joined: readonly PendingCase[]): Promise<void> {
    try {
      await this.#managers.stop()
      const results = await Promise.allSettled(joined.map(({ act }) => act()))
      await this.#managers.start()
      results.forEach((result, index) => {
        if (result.status === 'fulfilled') joined[index]!.resolve()
        else joined[index]!.reject(result.reason)
      })
    } catch (err) {
      for (const { reject } of joined) reject(err)
    }
  }
}
