/**
 * Stores of a process that is killed after a number of commits: commits that begin later have no effect, and the process receives no
 * further events.
 */
import type { Change, Store, Write } from '@capstan/apiserver'
import type { Stores } from '@capstan/lab'

export interface MortalStores extends Stores {
  /** Returns the stores that the process has opened and not removed. */
  all(): readonly Store[]
  /** Number of successful commits so far. Commits that end after the process is dead are not counted. */
  readonly commits: number
  readonly isDead: boolean
  /** Kills the process now: commits that begin later have no effect. */
  kill(): void
  /** Resolves when the process is dead: after its last commit, or when it is killed. */
  readonly death: Promise<void>
  /** Rejects pending requests of the dead process, so that it can be closed and its memory freed. */
  rejectPending(): void
}

/**
 * Returns a view of `base` for one process. Commit number `lifetime` is durable, but its writer receives no response, as when the
 * machine is switched off immediately after a write. The next process receives a separate view.
 */
export function mortalStores(base: Stores, lifetime = Number.POSITIVE_INFINITY): MortalStores {
  const opened = new Map<string, Store>()
  const { promise: death, resolve: die } = Promise.withResolvers<void>()
  const pendingRequests = Promise.withResolvers<never>()
  pendingRequests.promise.catch(() => {})
  /** Result of writes of a dead process: a promise that is pending until `rejectPending` rejects it. */
  const pendingUntilRejected = (): Promise<never> => pendingRequests.promise
  let commits = 0
  let isDead = false

  const mortal = (store: Store): Store => ({
    get revision() {
      return store.revision
    },
    get: (key) => store.get(key),
    list: (resource, namespace) => store.list(resource, namespace),
    listAt: (revision, resource, namespace) => store.listAt(revision, resource, namespace),
    count: (resource) => store.count(resource),
    since: (revision, resource, limit) => store.since(revision, resource, limit),
    async commit(write: Write): Promise<Change> {
      if (isDead) return pendingUntilRejected()
      // A rejected commit changes nothing and is not counted.
      const change = await store.commit(write)
      if (isDead) return pendingUntilRejected()
      commits++
      if (commits < lifetime) return change
      isDead = true
      die()
      return pendingUntilRejected()
    },
    subscribe: (resource, listener) =>
      store.subscribe(resource, (change) => {
        if (!isDead) listener(change)
      }),
    // The store of `base` stays open for the next process.
    close: () => Promise.resolve(),
  })

  return {
    kill() {
      isDead = true
      die()
    },
    all: () => [...opened.values()],
    get commits() {
      return commits
    },
    get isDead() {
      return isDead
    },
    death,
    rejectPending: () => pendingRequests.reject(new Error('the process is dead')),
    async store(name) {
      const existing = opened.get(name)
      if (existing) return existing
      const store = mortal(await base.store(name))
      opened.set(name, store)
      return store
    },
    async remove(name) {
      if (isDead) return pendingUntilRejected()
      opened.delete(name)
      await base.remove(name)
    },
    close: () => Promise.resolve(),
  }
}
