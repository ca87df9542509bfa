/**
 * Runs `capstan apiserver` on a disk that becomes full three times. No acknowledged write may be lost. Reads and watches must continue.
 * The server must report that it is not ready, and why it rejects writes. The first time, the server must accept writes again once the
 * disk has space. The second time the server is killed on the full disk, the third time it is stopped there. Both times the server is
 * started again once the disk has space.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, ConfigMap, messageOf, StatusError } from '@capstan/kube'
import { loadKubeconfig } from '@capstan/kube/node'
import { type CapstanProcess, Checks, startCapstan, withClient } from './processes/capstan-process.ts'
import { answers } from './processes/programs.ts'
import { type SmallDisk, smallDisk } from './processes/small-disk.ts'
import type { Outcome, Suite } from './shared/suite.ts'

const namespace = 'default'

export const fullDiskSuite: Suite = {
  shows: 'acknowledged writes survive a full disk, and writes succeed again afterwards',
  ci: true,
  tools: [],
  run: runOnFullDisk,
}

async function runOnFullDisk(): Promise<Outcome> {
  const base = mkdtempSync(join(tmpdir(), 'capstan-full-disk-'))
  const kubeconfig = join(base, 'kubeconfig')
  const disk = await smallDisk(join(base, 'disk'))
  console.log(`the disk is ${disk.kind}`)
  const checks = new Checks()
  const start = () => {
    const flags = ['--data', join(disk.folder, 'data'), '--secure-port', '0', '--kubeconfig', kubeconfig]
    return startCapstan(['apiserver', ...flags], /API server ready/, disk.prefix)
  }
  const writes: KnownWrites = { acknowledged: new Map(), rejected: new Set() }
  let server: CapstanProcess | undefined
  try {
    server = await start()
    for (const end of ['free', 'kill', 'stop'] as const) {
      const running = server
      await withClient(kubeconfig, (client) => fillUp(client, kubeconfig, running, disk, writes, checks))
      if (end === 'kill') await server.kill()
      if (end === 'stop') {
        const { code } = await server.stop()
        checks.check('the server stops cleanly on a full disk', code === 0, { code })
        // A start also needs some space. If there is none, the server must report that.
        const startError = await start().then((started) => started.kill(), messageOf)
        const isClear = startError === undefined || /Cannot open data folder .*\/db: .*space left/i.test(startError)
        checks.check('the server starts on a full disk, or exits with an error that names the cause', isClear, startError)
      }
      disk.free(server.pid)
      if (end === 'free') await withClient(kubeconfig, (client) => writeAgain(client, kubeconfig, writes, checks))
      else server = await start()
      await withClient(kubeconfig, (client) => checkWrites(client, writes, checks))
    }
    console.log(`${writes.acknowledged.size} acknowledged, ${writes.rejected.size} rejected`)
  } finally {
    await server?.kill().catch(() => {})
    await disk.close()
    rmSync(base, { recursive: true, force: true })
  }
  return checks
}

/** Fills the disk, writes until a write is rejected, and checks the behaviour of the server on the full disk. */
async function fillUp(
  client: Client,
  kubeconfig: string,
  { pid }: CapstanProcess,
  disk: SmallDisk,
  writes: KnownWrites,
  checks: Checks,
) {
  for (let i = 0; i < 20; i++) await write(client, writes)
  const before = new Set(writes.acknowledged.keys())
  const received: string[] = []
  const ended = new AbortController()
  const { metadata } = await client.list(ConfigMap, { namespace })
  const events = await client.watch(ConfigMap, { namespace, resourceVersion: metadata.resourceVersion!, signal: ended.signal })
  const watching = (async () => {
    for await (const { object } of events) received.push(object.metadata.name)
  })().catch(() => {})

  disk.fill(pid)
  let firstRejection: StatusError | undefined
  for (let i = 0; !firstRejection && i < 2000; i++) firstRejection = await write(client, writes)
  checks.check(
    'the first rejected write gets status 500 with the cause',
    firstRejection?.code === 500 && disk.full.test(firstRejection.message),
    firstRejection?.message,
  )
  const { server, ca } = await loadKubeconfig(kubeconfig)
  const isHealthy = (path: string) => answers(`${server}${path}`, ca === undefined ? {} : { ca })
  const health = await Promise.all(['/readyz', '/healthz', '/livez'].map(isHealthy))
  checks.check('readyz and healthz fail, livez succeeds', health.join() === 'false,false,true', health)
  const { items } = await client.list(ConfigMap, { namespace })
  checks.check('a list succeeds, and contains every acknowledged write', includesAll(items, writes))
  // As client-go does, the client repeats a request up to ten times after a response 503 with Retry-After.
  const laterRejections = await Promise.all([1, 2, 3].map(() => write(client, writes)))
  const areClear = laterRejections.every(
    (rejection) => rejection !== undefined && [500, 503].includes(rejection.code) && disk.full.test(rejection.message),
  )
  checks.check('later writes are rejected too, with the cause', areClear, laterRejections.map(messageOf))
  ended.abort()
  await watching
  const expected = [...writes.acknowledged.keys()].filter((name) => !before.has(name))
  checks.check('a watch gets the events of all acknowledged writes, and no others', received.join() === expected.join(), {
    received,
    expected,
  })
}

/** Checks that writes succeed once the disk has space again, without a restart. */
async function writeAgain(client: Client, kubeconfig: string, writes: KnownWrites, checks: Checks): Promise<void> {
  const rejection = await write(client, writes)
  checks.check('writes succeed again when the disk has space', rejection === undefined, rejection?.message)
  const { server, ca } = await loadKubeconfig(kubeconfig)
  checks.check('the server is ready again', await answers(`${server}/readyz`, ca === undefined ? {} : { ca }))
}

async function checkWrites(client: Client, writes: KnownWrites, checks: Checks): Promise<void> {
  const { items, metadata } = await client.list(ConfigMap, { namespace })
  checks.check('every acknowledged write is stored, with its resourceVersion', includesAll(items, writes))
  const highest = Math.max(...[...writes.acknowledged.values()].map(Number))
  checks.check('the resourceVersion has not decreased', Number(metadata.resourceVersion) >= highest)
  const storedRejections = items.filter((item) => writes.rejected.has(item.metadata.name)).map((item) => item.metadata.name)
  checks.check('no rejected write is stored', storedRejections.length === 0, storedRejections)
}

const includesAll = (items: readonly ConfigMap[], { acknowledged }: KnownWrites): boolean => {
  const storedVersions = new Map(items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]))
  return [...acknowledged].every(([name, resourceVersion]) => storedVersions.get(name) === resourceVersion)
}

/** The writes of all calls of `write`. */
interface KnownWrites {
  /** resourceVersions of the stored objects, by name. */
  readonly acknowledged: Map<string, string>
  /** Names of objects whose creation was rejected. */
  readonly rejected: Set<string>
}

let objectCount = 0

/** Creates an object, and records the result in `writes`. Returns the error if the API server rejects the object. */
async function write(client: Client, writes: KnownWrites): Promise<StatusError | undefined> {
  const name = `object-${objectCount++}`
  try {
    const created = await client.create(ConfigMap, { metadata: { name, namespace }, data: { padding: 'x'.repeat(1000) } })
    writes.acknowledged.set(name, created.metadata.resourceVersion)
    return undefined
  } catch (err) {
    if (!(err instanceof StatusError)) throw err
    writes.rejected.add(name)
    return err
  }
}
