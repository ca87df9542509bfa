/** Keeps a manager that does not lead from writing, however late it notices. */
import type { Transport } from '@capstan/kube'

export interface Fence {
  readonly transport: Transport
  /** Resolves when no write is under way any more. */
  quiet(): Promise<void>
}

/** The same transport; writes are refused unless `isOpen`, reads go through. */
export function fence(transport: Transport, isOpen: () => boolean): Fence {
  const underWay = new Set<Promise<unknown>>()
  return {
    transport: {
      watch: (request, signal) => transport.watch(request, signal),
      close: () => transport.close(),
      async send(request, signal) {
        if (request.verb === 'get' || request.verb === 'list') return transport.send(request, signal)
        if (!isOpen()) throw new Error(`Cannot ${request.verb} ${request.plural}: this manager does not lead`)
        const write = transport.send(request, signal)
        underWay.add(write)
        try {
          return await write
        } finally {
          underWay.delete(write)
        }
      },
    },
    async quiet() {
      await Promise.allSettled(underWay)
    },
  }
}
