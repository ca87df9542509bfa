/** Repeatedly gets one object from a server and records the longest time without a response. Runs in a child process of the bench. */
import { createClient, Namespace, seconds, sleep, systemClock, systemRandom } from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'
import { now } from './figure.ts'

export interface LongestWait {
  /** Longest time between two responses, or since the last response, in milliseconds. */
  readonly longest: number
}

const transport = httpsTransport(await loadKubeconfig(process.argv[2]!), {
  clock: systemClock,
  random: systemRandom,
  userAgent: 'bench',
  timeout: seconds(600),
})
const client = createClient(transport)
let last = now()
let longest = 0
process.once('message', () => {
  process.send?.({ longest: Math.max(longest, now() - last) } satisfies LongestWait)
  process.exit(0)
})
await client.get(Namespace, { name: 'default' })
process.send?.('ready')
last = now()
for (;;) {
  await client.get(Namespace, { name: 'default' })
  longest = Math.max(longest, now() - last)
  last = now()
  await sleep(systemClock, 20)
}
