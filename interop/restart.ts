/**
 * Kills `capstan apiserver --data` and starts it again on the same port while Capstan's watchers use it. Each watcher must resume after the
 * last event that it has received, without a new list, and receive every write. `interop/go` has a similar test with clients in Go.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, ConfigMap, systemClock, systemRandom, watchObjects } from '@capstan/kube'
import { Checks, startCapstan, withClient } from './processes/capstan-process.ts'
import type { Outcome, Suite } from './shared/suite.ts'

export const restartSuite: Suite = {
  shows: 'watchers resume without a list and lose no event when the server is killed and restarted',
  ci: true,
  tools: [],
  run,
}

const Watchers = 50
/** Number of ConfigMaps that each `write` creates. */
const Objects = 40
const namespace = 'default'

async function run(): Promise<Outcome> {
  const checks = new Checks()
  const folder = mkdtempSync(join(tmpdir(), 'capstan-restart-'))
  const kubeconfig = join(folder, 'kubeconfig')
  let port = '0'
  const start = async () => {
    const flags = ['--data', join(folder, 'data'), '--secure-port', port, '--kubeconfig', kubeconfig]
    const server = await startCapstan(['apiserver', ...flags], /API server ready/)
    port = /:(\d+),/.exec(server.ready)![1]!
    return server
  }
  try {
    let server = await start()
    await withClient(kubeconfig, async (client) => {
      const watchers = Array.from({ length: Watchers }, () => new Watcher(client))
      await write(client, 'before')
      for (const watcher of watchers) await watcher.untilReceived('before')
      // The server is killed immediately after these writes, probably before all of their events are delivered.
      await write(client, 'last')
      await server.kill()
      server = await start()
      await write(client, 'after')
      await client.delete(ConfigMap, { namespace, name: 'before-0' })
      for (const watcher of watchers) {
        await watcher.untilReceived('last')
        await watcher.untilReceived('after')
        await watcher.untilDeleted('before-0')
        watcher.stop()
      }
      const lists = watchers.map((watcher) => watcher.lists)
      checks.check(
        'each watcher listed once, at its start',
        lists.every((count) => count === 1),
        lists,
      )
      const twice = watchers.flatMap((watcher) => watcher.receivedTwice)
      checks.check('no creation of a ConfigMap was delivered twice', twice.length === 0, twice)
      console.log(`${Watchers} watchers, ${Objects * 3} objects: ${lists.reduce((sum, count) => sum + count, 0)} lists in all`)
    })
    const { code, stderr } = await server.stop()
    checks.check('the server stops cleanly', code === 0 && stderr === '', { code, stderr })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return checks
}

async function write(client: Client, prefix: string): Promise<void> {
  for (let i = 0; i < Objects; i++) await client.create(ConfigMap, { metadata: { namespace, name: `${prefix}-${i}` } })
}

/** Watches ConfigMaps, and records the events. */
class Watcher {
  lists = 0
  readonly receivedTwice: string[] = []
  readonly #received = new Set<string>()
  readonly #deleted = new Set<string>()
  readonly #stopped = new AbortController()
  #change = Promise.withResolvers<void>()

  constructor(client: Client) {
    void this.#follow(client)
  }

  stop(): void {
    this.#stopped.abort()
  }

  /** Waits until the watcher has received all ConfigMaps of a `write`. */
  untilReceived(prefix: string): Promise<void> {
    return this.#until(() =>
      Array.from({ length: Objects }, (_, i) => `${prefix}-${i}`).every((name) => this.#received.has(name)),
    )
  }

  untilDeleted(name: string): Promise<void> {
    return this.#until(() => this.#deleted.has(name))
  }

  /** Waits until `holds` returns true. @throws Error after half a minute */
  async #until(holds: () => boolean): Promise<void> {
    const tooLate = Promise.withResolvers<never>()
    // A rejected promise without a handler must not end the process.
    tooLate.promise.catch(() => {})
    const timer = setTimeout(
      () =>
        tooLate.reject(
          new Error(
            `after 30 s, a watcher has received only ${this.#received.size} ConfigMaps and ${this.#deleted.size} deletions`,
          ),
        ),
      30_000,
    )
    try {
      while (!holds()) await Promise.race([this.#change.promise, tooLate.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  async #follow(client: Client): Promise<void> {
    const options = { namespace, clock: systemClock, random: systemRandom, signal: this.#stopped.signal }
    for await (const event of watchObjects(client, ConfigMap, options)) {
      if (event.kind === 'replaced') {
        this.lists++
        for (const { metadata } of event.objects) this.#received.add(metadata.name)
      } else if (event.kind === 'applied') {
        const { name } = event.object.metadata
        if (this.#received.has(name)) this.receivedTwice.push(name)
        this.#received.add(name)
      } else if (event.kind === 'deleted') this.#deleted.add(event.object.metadata.name)
      this.#change.resolve()
      this.#change = Promise.withResolvers()
    }
  }
}
