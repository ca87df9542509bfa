/** Rejects writes of a manager that is not the leader, even before the manager has detected that it has lost its Lease. */
import { type Transport, withSend } from '@capstan/kube'

/** A transport that rejects writes while the fence is closed. */
export interface Fence {
  readonly transport: Transport
  /** Resolves when the writes that are in progress at the time of the call have ended. */
  waitUntilIdle(): Promise<void>
}

/** Wraps a transport so that writes are rejected unless `isOpen` returns true. Reads are forwarded. */
export function fence(transport: Transport, isOpen: () => boolean): Fence {
  const writesInProgress = new Set<Promise<unknown>>()
  return {
    transport: withSend(transport, async (request, signal) => {
      if (request.verb === 'get' || request.verb === 'list') return transport.send(request, signal)
      const beforeSend = () => {
        if (!isOpen()) throw new Error(`Cannot ${request.verb} ${request.plural}: this manager does not lead`)
      }
      beforeSend()
      // The transport calls `beforeSend` again right before it sends: the request may have waited, for example for a connection while the
      // process was suspended.
      const write = transport.send({ ...request, beforeSend }, signal)
      writesInProgress.add(write)
      try {
        return await write
      } finally {
        writesInProgress.delete(write)
      }
    }),
    async waitUntilIdle() {
      await Promise.allSettled(writesInProgress)
    },
  }
}
