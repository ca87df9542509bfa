/**
 * Kills processes with SIGKILL, repeatedly on the same data folders: by default up to 500 processes that write to the store without
 * a server, some of them while they start, and twelve times `capstan apiserver` while it handles up to 16 writes at a time over HTTPS.
 * After each restart, every acknowledged write must be present, resourceVersion must not have decreased, and a watch from an earlier
 * resourceVersion must deliver the later changes, or fail with 410.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, ConfigMap, isReason, messageOf, minutes, type Random, seededRandom, type WatchOptions } from '@capstan/kube'
import { type CrashResult, crashRounds } from '../packages/apiserver/src/store/crash-rounds.ts'
import { type CapstanProcess, Checks, runCapstan, startCapstan, withClient } from './processes/capstan-process.ts'
import type { Outcome } from './shared/suite.ts'

/** Number of concurrent writers. */
const InFlight = 16
const namespace = 'default'

/** State that clients have received. No later read may return an older state. */
interface ReceivedState {
  /** State of each ConfigMap, by name, after its last acknowledged write, or from a later list. */
  readonly acknowledged: Map<string, { revision: number; count: number }>
  /** Latest revision of each object, by name, from the watch or from a later list. */
  readonly watched: Map<string, number>
  /** Highest resourceVersion that a client has received. */
  newest: number
  /** Revision from which the next watch begins: that of the last event, or of a later list. */
  watchedRevision: number
}

/**
 * Runs the suite. CAPSTAN_KILLS sets how many processes that write to the store without a server are killed, such as 5000. By default, up
 * to 500 are killed, within two minutes.
 */
export async function killSuite(): Promise<Outcome> {
  const store = await killStores(process.env.CAPSTAN_KILLS)
  const server = await killServers({ rounds: 12, seed: 1 })
  return { passed: store.passed + server.passed, failed: store.failed + server.failed }
}

/** Kills processes on two folders concurrently, so that one process starts while the other writes. */
async function killStores(requested: string | undefined): Promise<Outcome> {
  const rounds = requested === undefined ? 500 : Number(requested)
  const folder = mkdtempSync(join(tmpdir(), 'capstan-kill-store-'))
  const end = requested === undefined ? performance.now() + minutes(2) : Infinity
  try {
    const results = await Promise.all(
      [1, 2].map((seed) =>
        crashRounds({
          folder: join(folder, String(seed)),
          rounds: Math.ceil(rounds / 2),
          random: seededRandom(seed),
          isEnough: () => performance.now() > end,
        }),
      ),
    )
    const sum = (count: (result: CrashResult) => number) => results.reduce((total, result) => total + count(result), 0)
    const mistakes = results.flatMap((result) => result.mistakes)
    for (const mistake of mistakes) console.log(`FAIL ${mistake}`)
    console.log(
      `the store: ${sum((result) => result.rounds)} of ${rounds} kills, ${sum((result) => result.early)} of them before it was open; ` +
        `${sum((result) => result.acknowledged)} acknowledged writes, ${mistakes.length} lost or wrong; ${sum((result) => result.expired)} watches got 410`,
    )
    return { passed: sum((result) => result.rounds), failed: mistakes.length }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function killServers({ rounds, seed }: { rounds: number; seed: number }): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-kill-'))
  const kubeconfig = join(folder, 'kubeconfig')
  const random = seededRandom(seed)
  const checks = new Checks()
  const received: ReceivedState = { acknowledged: new Map(), watched: new Map(), newest: 0, watchedRevision: 0 }
  let port = '0'
  const start = async (): Promise<CapstanProcess> => {
    const flags = ['--data', folder, '--secure-port', port, '--kubeconfig', kubeconfig]
    const server = await startCapstan(['apiserver', ...flags], /API server ready/)
    port = /:(\d+),/.exec(server.ready)![1]!
    return server
  }
  try {
    for (let round = 0; round < rounds; round++) {
      const server = await start()
      await withClient(kubeconfig, async (client) => {
        await checkStoredState(client, received, checks)
        await writeUntilKilled(client, server, received, random)
      })
    }
    const server = await start()
    await withClient(kubeconfig, (client) => checkStoredState(client, received, checks))
    const secondStart = await start().then(() => 'it started', messageOf)
    const isRejected = secondStart.includes(`Cannot open data folder ${folder}/db: it is in use by another process`)
    checks.check('a second server on the folder fails with the name of the folder', isRejected, secondStart)
    await backUpAndRestore(folder, received, checks)
    const { code, stderr } = await server.stop()
    checks.check('the server stops cleanly', code === 0 && stderr === '', { code, stderr })
    console.log(`the server: ${received.acknowledged.size} objects, resourceVersion ${received.newest}, ${rounds} kills`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return checks
}

/**
 * Backs up a running server, restores the backup to another folder, and starts a server on that folder. That server must have all
 * acknowledged writes. It must respond with 410 to a watch from a resourceVersion that is newer than the backup.
 */
async function backUpAndRestore(folder: string, received: ReceivedState, checks: Checks): Promise<void> {
  const [file, restoredFolder] = [join(folder, 'state.backup'), join(folder, 'restored')]
  const kubeconfig = join(restoredFolder, 'kubeconfig')
  for (const argv of [
    ['backup', file, '--data', folder],
    ['backup', 'check', file],
    ['restore', file, '--data', restoredFolder],
  ]) {
    const { code, stderr } = await runCapstan(argv)
    checks.check(`capstan ${argv.join(' ')} succeeds`, code === 0 && stderr === '', { code, stderr })
  }
  const restored = await startCapstan(
    ['apiserver', '--data', restoredFolder, '--secure-port', '0', '--kubeconfig', kubeconfig],
    /API server ready/,
  )
  await withClient(kubeconfig, async (client) => {
    const { items, metadata } = await client.list(ConfigMap, { namespace })
    const restoredRevisions = new Map(items.map((item) => [item.metadata.name, Number(item.metadata.resourceVersion)]))
    const isRestored = [...received.acknowledged].every(([name, { revision }]) => restoredRevisions.get(name) === revision)
    checks.check('the restored folder has every acknowledged write, with its resourceVersion', isRestored)
    checks.check(
      'the resourceVersion of the restored folder is more than 100 million higher than all earlier ones',
      Number(metadata.resourceVersion) > received.newest + 1e8,
    )
    // A resourceVersion that the first server could have assigned after the backup.
    const options = { namespace, resourceVersion: String(received.newest + 10), signal: AbortSignal.timeout(10_000) }
    const result = await firstEvent(client, options).catch((err: unknown) =>
      isReason(err, 'Expired', 'Gone') ? '410' : messageOf(err),
    )
    checks.check('a watch from a resourceVersion after the backup gets 410', result === '410', result)
  })
  await restored.stop()
}

async function firstEvent(client: Client, options: WatchOptions): Promise<string> {
  for await (const { type } of await client.watch(ConfigMap, options)) return `the event ${type}`
  return 'no event'
}

/** Sends up to 16 writes at a time, and kills the server after a random number of acknowledgements. */
async function writeUntilKilled(client: Client, server: CapstanProcess, received: ReceivedState, random: Random): Promise<void> {
  let remainingWrites = 50 + Math.floor(random.next() * 400)
  const killed = Promise.withResolvers<void>()
  const ended = new AbortController()
  const options = { namespace, resourceVersion: String(received.watchedRevision), signal: ended.signal }
  const watching = follow(await client.watch(ConfigMap, options), received).catch(() => {})

  const acknowledge = ({ metadata, data }: ConfigMap) => {
    const revision = Number(metadata.resourceVersion)
    received.acknowledged.set(metadata.name, { revision, count: Number(data!.count) })
    received.newest = Math.max(received.newest, revision)
    if (--remainingWrites === 0) killed.resolve(server.kill())
  }
  const writer = async (id: number) => {
    const ownNames = [...received.acknowledged.keys()].filter((name) => name.startsWith(`w${id}-`))
    for (;;) {
      const name = ownNames[Math.floor(random.next() * ownNames.length)]
      if (name === undefined || random.next() < 0.3) {
        const created = await client.create(ConfigMap, { metadata: { generateName: `w${id}-`, namespace }, data: { count: '0' } })
        ownNames.push(created.metadata.name)
        acknowledge(created)
      } else {
        const count = received.acknowledged.get(name)!.count + 1
        acknowledge(
          await client.patch(ConfigMap, { namespace, name }, { type: 'merge', body: { data: { count: String(count) } } }),
        )
      }
    }
  }
  // Each writer ends with the failure of its pending request, whose result is unknown.
  await Promise.all([killed.promise, ...Array.from({ length: InFlight }, (_, id) => writer(id).catch(() => {}))])
  ended.abort()
  await watching
}

async function checkStoredState(client: Client, received: ReceivedState, checks: Checks): Promise<void> {
  const { items, metadata } = await client.list(ConfigMap, { namespace })
  const revision = Number(metadata.resourceVersion)
  checks.check('the resourceVersion of a list has not decreased', revision >= received.newest, {
    revision,
    newest: received.newest,
  })
  const stored = new Map(items.map((item) => [item.metadata.name, item]))
  for (const [name, acknowledged] of received.acknowledged) {
    const object = stored.get(name)
    const isStored =
      Number(object?.metadata.resourceVersion) >= acknowledged.revision && Number(object?.data?.count) >= acknowledged.count
    checks.check(`${name} is stored as acknowledged, or newer`, isStored, {
      acknowledged,
      stored: object?.metadata.resourceVersion,
    })
  }

  // A write in progress at the kill may or may not be stored. From here on, the stored state is the expected state.
  for (const { metadata, data } of items) {
    if (data?.count === undefined) continue
    received.acknowledged.set(metadata.name, { revision: Number(metadata.resourceVersion), count: Number(data.count) })
  }
  received.newest = revision
  await checkResume(client, received, items, revision, checks)
}

/** Checks that a watch from `watchedRevision` delivers the newer objects of the list, or fails with 410. */
async function checkResume(
  client: Client,
  received: ReceivedState,
  items: readonly ConfigMap[],
  revision: number,
  checks: Checks,
): Promise<void> {
  const isFirstWatch = received.watchedRevision === 0
  const before = received.watchedRevision
  const ended = new AbortController()
  try {
    if (!isFirstWatch && items.some((item) => Number(item.metadata.resourceVersion) > before)) {
      const options = { namespace, resourceVersion: String(before), signal: ended.signal }
      const last = Math.max(...items.map((item) => Number(item.metadata.resourceVersion)))
      await follow(await client.watch(ConfigMap, options), received, last)
    }
    const missed = items.filter(
      ({ metadata }) => !isFirstWatch && received.watched.get(metadata.name) !== Number(metadata.resourceVersion),
    )
    checks.check(
      'a watch resumes from its last resourceVersion',
      missed.length === 0,
      missed.map(({ metadata }) => metadata.name),
    )
  } catch (err) {
    checks.check('a watch that cannot resume gets 410', isReason(err, 'Expired', 'Gone'), String(err))
  }
  ended.abort()
  for (const { metadata } of items) received.watched.set(metadata.name, Number(metadata.resourceVersion))
  received.watchedRevision = revision
}

/** Records the events of a watch, until the watch ends or reaches the revision `last`. */
async function follow(
  events: AsyncIterable<{ type: string; object: ConfigMap }>,
  received: ReceivedState,
  last = Infinity,
): Promise<void> {
  for await (const { object } of events) {
    const revision = Number(object.metadata.resourceVersion)
    received.watched.set(object.metadata.name, revision)
    received.watchedRevision = revision
    received.newest = Math.max(received.newest, revision)
    if (revision >= last) return
  }
}
