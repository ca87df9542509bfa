/** Deletes Events a fixed time after their last write. Upstream: --event-ttl, implemented by a lease in etcd. */
import { type Clock, type KubeObject, type Logger, timeLeft, type Timer } from '@capstan/kube'
import { type Change, StoreConflict, type Store, type StoreKey } from '@capstan/apiserver/kinds'

interface Due {
  readonly key: StoreKey
  /** Time of expiry, in milliseconds of `Clock.elapsed`. */
  readonly at: number
}

/**
 * Starts the deletion of expired Events. Returns a function that stops it.
 *
 * @param lifetime in milliseconds
 */
export function runEventExpiry({ store, clock, log }: { store: Store; clock: Clock; log: Logger }, lifetime: number): () => void {
  // All Events have the same lifetime, so insertion order is expiry order.
  const due = new Map<string, Due>()
  let timer: Timer | undefined
  const trackExpiry = ({ key, object }: Pick<Change, 'key' | 'object'>, at = clock.elapsed() + lifetime) => {
    const id = `${key.namespace}/${key.name}`
    due.delete(id)
    if (object) due.set(id, { key, at })
    timer ??= schedule()
  }
  const schedule = (): Timer | undefined => {
    const [next] = due.values()
    return next && clock.schedule(Math.max(0, next.at - clock.elapsed()), expire)
  }
  const expire = () => {
    timer = undefined
    for (const [id, { key, at }] of due) {
      if (at > clock.elapsed()) break
      due.delete(id)
      const previous = store.get(key)
      // A concurrent write makes the commit fail with a conflict, and renews the lifetime of the Event.
      if (previous) store.commit({ key, previous, object: undefined }).catch(unlessConflict)
    }
    timer = schedule()
  }
  const unlessConflict = (err: unknown) => {
    if (!(err instanceof StoreConflict)) log.warn('Cannot delete an expired event', { err })
  }
  const storedEvents = store.list('events').map((object) => ({ object, written: lastWriteOf(object) }))
  for (const { object, written } of storedEvents.sort((a, b) => a.written - b.written)) {
    const { namespace = '', name } = object.metadata
    const remainingTime = timeLeft({ since: written, length: lifetime, now: clock.now() })
    trackExpiry({ key: { resource: 'events', namespace, name }, object }, clock.elapsed() + remainingTime)
  }
  const stop = store.subscribe('events', trackExpiry)
  return () => {
    stop()
    timer?.cancel()
  }
}

/** Returns the time of the last write that changed an object. */
const lastWriteOf = ({ metadata }: KubeObject): number =>
  (metadata.managedFields ?? [])
    .map(({ time }) => Date.parse(time ?? '') || 0)
    .reduce((latest, time) => Math.max(latest, time), Date.parse(metadata.creationTimestamp))
