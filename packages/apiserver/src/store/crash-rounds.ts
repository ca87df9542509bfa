/** Repeatedly kills a process that writes to one folder, and checks the state that the next process finds. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { appendAll } from '@capstan/kube'
import type { Random } from '@capstan/kube'

/** First line of a writer's output: the state that the writer found. */
export interface FoundState {
  readonly revision: number
  readonly objects: readonly (readonly [name: string, revision: number])[]
  /** Changes after the revision that the writer got as an argument; absent when some of them have left the history. */
  readonly changes: readonly AcknowledgedWrite[] | undefined
}

/** Each further line of a writer's output: an acknowledged write. */
export interface AcknowledgedWrite {
  readonly revision: number
  readonly name: string
  readonly isDeletion: boolean
}

export interface CrashOptions {
  readonly folder: string
  /** Maximum number of rounds. In each round, one process writes until it is killed. */
  readonly rounds: number
  readonly random: Random
  /** Ends the test before the next round when it returns true. */
  readonly isEnough?: () => boolean
}

export interface CrashResult {
  readonly rounds: number
  readonly acknowledged: number
  /** Rounds in which the writer was killed before it reported the state that it found. */
  readonly early: number
  /** Rounds in which `FoundState` has no `changes`. */
  readonly expired: number
  readonly mistakes: readonly string[]
}

/** Option `checkpointAfter` of the store in about half of the rounds: small, so that kills also interrupt the beginning of a log. */
const SmallLog = 20_000
/** Option `checkpointAfter` of the store in the other rounds. */
const LargeLog = 4_000_000

/**
 * Runs the rounds. `mistakes` has each contradiction between the acknowledged writes and the state that a later process found, and the gaps
 * in found changes.
 */
export async function crashRounds({ folder, rounds, random, isEnough }: CrashOptions): Promise<CrashResult> {
  /** The last write of each object that was acknowledged or found, by name. */
  const last = new Map<string, AcknowledgedWrite>()
  /** The latest acknowledged writes, oldest first. */
  const writes: AcknowledgedWrite[] = []
  const mistakes: string[] = []
  let [round, early, expired, acknowledgedCount] = [0, 0, 0, 0]
  for (; round < rounds && !isEnough?.(); round++) {
    const knownRevision = writes[Math.max(0, writes.length - 1 - Math.floor(random.next() * 300))]?.revision ?? 0
    const { found, acknowledged } = await runWriter(folder, knownRevision, random)
    if (found) {
      appendAll(
        mistakes,
        mistakesIn(found, knownRevision, last, writes).map((mistake) => `round ${round}: ${mistake}`),
      )
      if (!found.changes) expired++
      // A write in progress when the writer was killed may or may not be stored; the found state decides.
      for (const [name, revision] of found.objects) last.set(name, { name, revision, isDeletion: false })
      const foundNames = new Set(found.objects.map(([name]) => name))
      for (const [name, { revision }] of last) if (!foundNames.has(name)) last.set(name, { name, revision, isDeletion: true })
    } else early++
    for (const write of acknowledged.toSorted((a, b) => a.revision - b.revision)) {
      last.set(write.name, write)
      writes.push(write)
    }
    acknowledgedCount += acknowledged.length
    writes.splice(0, writes.length - 1000)
  }
  return { rounds: round, acknowledged: acknowledgedCount, early, expired, mistakes }
}

/** Starts a writer and kills it with SIGKILL. */
async function runWriter(
  folder: string,
  knownRevision: number,
  random: Random,
): Promise<{ found: FoundState | undefined; acknowledged: AcknowledgedWrite[] }> {
  const maxLogSize = random.next() < 0.5 ? SmallLog : LargeLog
  const writer = spawn(
    process.execPath,
    [fileURLToPath(new URL('./crash-writer.ts', import.meta.url)), folder, String(maxLogSize), String(knownRevision)],
    // Caches compiled sources, so that they are compiled once instead of in each round.
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, NODE_COMPILE_CACHE: `${folder}.compiled` } },
  )
  const exited = once(writer, 'exit')
  // About one writer in ten is killed while it starts or opens the folder, or shortly after.
  const earlyKill = random.next() < 0.1 ? setTimeout(() => writer.kill('SIGKILL'), random.next() * 400) : undefined
  let remainingWrites = 1 + Math.floor(random.next() * 150)
  let found: FoundState | undefined
  const acknowledged: AcknowledgedWrite[] = []
  // Reads to the end of the output, because every printed write was acknowledged.
  for await (const line of createInterface({ input: writer.stdout })) {
    if (!found) found = JSON.parse(line) as FoundState
    else {
      acknowledged.push(JSON.parse(line) as AcknowledgedWrite)
      if (--remainingWrites === 0) writer.kill('SIGKILL')
    }
  }
  clearTimeout(earlyKill)
  const [code] = (await exited) as [number | null]
  if (code !== null) throw new Error(`the writer was not killed: it ended with exit code ${code}`)
  return { found, acknowledged }
}

function mistakesIn(
  { revision, objects, changes }: FoundState,
  knownRevision: number,
  last: ReadonlyMap<string, AcknowledgedWrite>,
  writes: readonly AcknowledgedWrite[],
): string[] {
  const mistakes: string[] = []
  const highest = writes.at(-1)?.revision ?? 0
  if (revision < highest) mistakes.push(`revision ${revision} is below ${highest}, which was acknowledged`)
  const foundRevisions = new Map(objects)
  const isDeletedSince = (write: AcknowledgedWrite) =>
    !changes || changes.some((change) => change.name === write.name && change.isDeletion && change.revision > write.revision)
  for (const write of last.values()) {
    const foundRevision = foundRevisions.get(write.name)
    if (write.isDeletion && foundRevision !== undefined && foundRevision < write.revision)
      mistakes.push(`${write.name} exists at ${foundRevision}, although it was deleted at ${write.revision}`)
    if (!write.isDeletion && (foundRevision === undefined ? !isDeletedSince(write) : foundRevision < write.revision))
      mistakes.push(
        `${write.name} was written at ${write.revision}, and ${foundRevision === undefined ? 'not found' : `found at ${foundRevision}`}`,
      )
  }
  if (!changes) return mistakes
  const isWithoutGaps = changes.every((change, index) => change.revision === knownRevision + 1 + index)
  if (!isWithoutGaps || changes.length !== revision - knownRevision)
    mistakes.push(`changes after ${knownRevision} have gaps up to ${revision}`)
  const observed = new Map(changes.map((change) => [change.revision, JSON.stringify(change)]))
  for (const write of writes.filter(({ revision }) => revision > knownRevision))
    if (observed.get(write.revision) !== JSON.stringify(write))
      mistakes.push(`a watch from ${knownRevision} did not receive ${JSON.stringify(write)}`)
  return mistakes
}
