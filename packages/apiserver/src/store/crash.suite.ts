/** Kills a process that writes, again and again, and looks at what it left behind. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { expect } from 'vitest'
import { seededRandom, systemClock } from '@capstan/kube'
import { openDurable } from './durable.ts'
import { at } from './store.suite.ts'

/** Each acknowledged write must be there, and no round may begin below the revision that an earlier one acknowledged. */
export async function crashTest({ folder, rounds }: { folder: string; rounds: number }): Promise<void> {
  const random = seededRandom(7)
  const acknowledged = new Map<string, number>()
  let highest = 0
  for (let round = 0; round < rounds; round++) {
    const writer = spawn(process.execPath, [new URL('./crash-writer.ts', import.meta.url).pathname, folder, String(round)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exited = once(writer, 'exit')
    const killAfter = 50 + Math.floor(random.next() * 400)
    let lines = 0
    // Leaving this loop is leaving the stream: what the writer had still said by then was acknowledged, too.
    for await (const line of createInterface({ input: writer.stdout })) {
      const [name, revision] = line.split(' ') as [string, string]
      acknowledged.set(name, Number(revision))
      highest = Math.max(highest, Number(revision))
      if (++lines === killAfter) writer.kill('SIGKILL')
    }
    await exited

    const stores = await openDurable(folder, { clock: systemClock })
    const store = await stores.store('crash')
    expect(store.revision).toBeGreaterThanOrEqual(highest)
    const lost = [...acknowledged].filter(([name, revision]) => {
      const found = store.get(at(name))
      return !found || Number(found.metadata.resourceVersion) < revision
    })
    expect(lost).toEqual([])
    await stores.close()
  }
  expect(acknowledged.size).toBeGreaterThan(rounds * 10)
}
