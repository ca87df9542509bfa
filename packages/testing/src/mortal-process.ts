/** Simulates a process that is killed: afterwards its requests have no effect, and it receives no responses or events. */
import type { HookTransport } from '@capstan/extension'
import type { Clock, Transport } from '@capstan/kube'
import type { Stores } from '@capstan/lab'
import { mortalStores } from './mortal-stores.ts'

export interface ProcessConnections {
  readonly clock: Clock
  readonly stores: Stores
  /** Transport to the API server. */
  readonly transport: Transport
  readonly hooks: HookTransport
}

export interface MortalConnections extends ProcessConnections {
  readonly isDead: boolean
  /**
   * Kills the process now or, with `writes`, after that number of additional successful writes to the API server: the response to the last
   * write never arrives.
   */
  kill(writes?: number): void
  /** Rejects pending requests of the dead process, so that it can be closed. */
  rejectPending(): void
}

/** Wraps the connections of a process, so that a test can kill the process. */
export function mortalConnections({ clock, stores, transport, hooks }: ProcessConnections): MortalConnections {
  const processStores = mortalStores(stores)
  const pendingRequests = Promise.withResolvers<never>()
  pendingRequests.promise.catch(() => {})
  let isDead = false
  let writesLeft = Number.POSITIVE_INFINITY
  const die = () => {
    isDead = true
    processStores.kill()
  }
  /** Returns a promise that settles as `promise` does. After the process is killed, only `rejectPending` settles the returned promise. */
  const unlessDead = async <T>(promise: Promise<T>): Promise<T> => {
    const outcome = await promise.then(
      (value) => () => value,
      (err: unknown) => () => {
        throw err
      },
    )
    return isDead ? pendingRequests.promise : outcome()
  }

  return {
    get isDead() {
      return isDead
    },
    kill(writes = 0) {
      if (writes === 0) die()
      else writesLeft = writes
    },
    rejectPending() {
      processStores.rejectPending()
      pendingRequests.reject(new Error('the process is dead'))
    },
    stores: processStores,
    clock: {
      now: () => clock.now(),
      elapsed: () => clock.elapsed(),
      schedule: (after, callback) => clock.schedule(after, () => void (isDead || callback())),
    },
    transport: {
      close: () => {},
      async send(request, signal) {
        if (isDead) return pendingRequests.promise
        const response = await unlessDead(transport.send(request, signal))
        if (request.verb === 'get' || request.verb === 'list' || request.options?.dryRun || --writesLeft > 0) return response
        die()
        return pendingRequests.promise
      },
      async watch(request, signal) {
        if (isDead) return pendingRequests.promise
        return whileAlive(await unlessDead(transport.watch(request, signal)), () => isDead, signal)
      },
    },
    hooks: {
      close: () => {},
      post: (target, body, signal) => (isDead ? pendingRequests.promise : unlessDead(hooks.post(target, body, signal))),
    },
  }
}

/** Yields the events until the process is dead. Then waits until the watch is aborted. */
async function* whileAlive<T>(events: AsyncIterable<T>, isDead: () => boolean, signal: AbortSignal): AsyncGenerator<T> {
  for await (const event of events) {
    if (isDead()) await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    if (signal.aborted) return
    yield event
  }
}
