/** Finds the folder of an API server's state through `--etcd-servers`. */
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'

/** Response of the `etcd` of `capstan envtest` at `StatePath`. */
export interface StatePlace {
  readonly folder: string
  /** `--unsafe-no-fsync`: writes are not synced. */
  readonly isUnsafe: boolean
}

export const StatePath = '/capstan/state'

/** Time to wait for a reachable etcd. Upstream: 20 s. */
const timeLimit = 20_000
const pause = 100

/** Returns the folder from the first reachable server. @throws Error that names the servers and their responses */
export async function findState(servers: readonly string[], sleep: (ms: number) => Promise<void>): Promise<StatePlace> {
  let problem = ''
  for (let waited = 0; waited <= timeLimit; waited += pause) {
    for (const server of servers) {
      const answer = await requestState(server)
      if (typeof answer === 'object') return answer
      problem = answer
    }
    await sleep(pause)
  }
  throw new Error(`cannot reach --etcd-servers ${servers.join(',')}: ${problem}`)
}

/** Returns the folder, or the reason why the server is unreachable. @throws Error for a real etcd */
async function requestState(server: string): Promise<StatePlace | string> {
  let answer: IncomingMessage
  try {
    // Not fetch, which refuses some ports and loads slowly.
    ;[answer] = (await once(get(new URL(StatePath, server)), 'response')) as [IncomingMessage]
  } catch (err) {
    return err instanceof Error ? err.message : String(err)
  }
  const body = await text(answer)
  if (answer.statusCode === 200) return JSON.parse(body) as StatePlace
  throw new Error(
    `--etcd-servers ${server} is not an etcd of capstan envtest, and this API server keeps its state in no other; ` +
      'capstan apiserver --data keeps it in a folder',
  )
}
