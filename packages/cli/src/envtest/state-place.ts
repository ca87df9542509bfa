/** Finds the state folder of an API server by a request to `--etcd-servers`. */
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'

/** Response body at `StatePath` of the `etcd` launcher that `capstan envtest` writes. */
export interface StateLocation {
  readonly folder: string
  /** Whether etcd was started with `--unsafe-no-fsync`: writes are not synced to disk. */
  readonly isUnsafe: boolean
}

export const StatePath = '/capstan/state'

/** Milliseconds to wait for a reachable etcd, without the duration of the requests. Upstream: dialTimeout. */
const timeLimit = 20_000
/** Milliseconds between two attempts. */
const pause = 100

/**
 * Returns the response of the first reachable server.
 *
 * @throws Error for a real etcd, or when no server is reachable within the time limit; the signal's reason if it aborts
 */
export async function findState(
  servers: readonly string[],
  sleep: (ms: number) => Promise<void>,
  signal?: AbortSignal,
): Promise<StateLocation> {
  let problem = ''
  for (let waited = 0; waited <= timeLimit; waited += pause) {
    for (const server of servers) {
      const result = await requestState(server, signal)
      if (typeof result === 'object') return result
      problem = result
    }
    signal?.throwIfAborted()
    await sleep(pause)
  }
  throw new Error(`cannot reach --etcd-servers ${servers.join(',')}: ${problem}`)
}

/** Returns the response, or the reason why the server is unreachable. @throws Error for a real etcd */
async function requestState(server: string, signal: AbortSignal | undefined): Promise<StateLocation | string> {
  let response: IncomingMessage
  try {
    // `fetch` is not used, because it rejects some ports and loads slowly.
    ;[response] = (await once(get(new URL(StatePath, server), signal ? { signal } : {}), 'response')) as [IncomingMessage]
  } catch (err) {
    return err instanceof Error ? err.message : String(err)
  }
  const body = await text(response)
  if (response.statusCode === 200) return JSON.parse(body) as StateLocation
  throw new Error(
    `--etcd-servers ${server} is not the etcd launcher of capstan envtest, and no other etcd is supported; ` +
      'to store the state in a folder, use capstan apiserver --data',
  )
}
