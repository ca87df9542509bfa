/**
 * All stores of a folder in one file: a checkpoint, which has the state before the first change of a log, or a backup. The first frame
 * identifies the file; the last frame has the numbers of stores and objects, and a digest of all frames before it.
 */
import { readJSON } from '@capstan/kube'
import { createHash } from 'node:crypto'
import type { KubeObject } from '@capstan/kube'
import { DamagedData } from './damage.ts'
import type { Files, OpenFile } from './files.ts'
import { encodeFrame, readFrames } from './frame.ts'
import { emptySnapshot, type Snapshot, type Snapshots } from './snapshot.ts'
import { type ObjectEncoding, plainObjects, jsonOf } from './packed.ts'

/** Format version of checkpoints, backups and logs. Files with another version are rejected. */
export const Format = 2

export interface CheckpointHeader {
  /** Kind of the file. */
  readonly capstan: 'checkpoint' | 'backup'
  readonly format: number
  /** Creation time, milliseconds since the epoch. */
  readonly time: number
}

export interface Totals {
  readonly stores: number
  readonly objects: number
}

/** Copy of one store at one revision, needed because the map of a `Snapshot` keeps changing. */
export interface StoreSnapshot {
  readonly store: string
  readonly revision: number
  readonly objects: readonly {
    readonly key: { resource: string; namespace: string; name: string }
    readonly object: KubeObject
  }[]
}

export const storeSnapshots = (snapshots: Snapshots): StoreSnapshot[] =>
  [...snapshots].map(([store, { revision, objects }]) => ({ store, revision, objects: [...objects.values()] }))

type Line =
  | { readonly store: string; readonly revision: number }
  | { readonly key: readonly [resource: string, namespace: string, name: string]; readonly object: KubeObject }
  | (Totals & { readonly end: true; readonly sha256: string })

/** Number of characters after which a new frame begins: small enough that writing a frame does not block the event loop for long. */
const FrameSize = 256 * 1024

/**
 * Writes a checkpoint or backup frame by frame, and returns its size in bytes. Yields to the event loop after frames that are too long for
 * synchronous writes.
 */
export async function writeCheckpoint(
  file: OpenFile,
  header: CheckpointHeader,
  snapshots: readonly StoreSnapshot[],
): Promise<number> {
  const digest = createHash('sha256')
  let number = 1
  let size = 0
  const write = async (content: string) => {
    const bytes = encodeFrame(number++, content)
    await file.write(bytes, size)
    size += bytes.length
    return bytes
  }
  digest.update(await write(JSON.stringify(header)))
  let objects = 0
  for (const snapshot of snapshots) {
    const head = JSON.stringify({ store: snapshot.store, revision: snapshot.revision } satisfies Line)
    let content = head
    for (const { key, object } of snapshot.objects) {
      if (content.length > FrameSize) {
        digest.update(await write(content))
        content = head
      }
      content += `\n{"key":${JSON.stringify([key.resource, key.namespace, key.name])},"object":${jsonOf(object)}}`
      objects++
    }
    digest.update(await write(content))
  }
  const end: Line = { end: true, stores: snapshots.length, objects, sha256: digest.digest('hex') }
  await write(JSON.stringify(end))
  return size
}

export interface Checkpoint {
  readonly header: CheckpointHeader
  readonly snapshots: Snapshots
  readonly totals: Totals
  /** Size of the file in bytes. */
  readonly size: number
}

/**
 * Reads and verifies a checkpoint or backup. `encode` makes each object of the returned snapshots from an object of the file.
 * @throws Error when the file is of another kind or format, and when the beginning of a backup is damaged; otherwise DamagedData when the
 * content is damaged
 */
export async function readCheckpoint(
  files: Files,
  path: string,
  kind: CheckpointHeader['capstan'],
  encode: ObjectEncoding = plainObjects,
): Promise<Checkpoint> {
  const bytes = await files.read(path)
  const digest = createHash('sha256')
  const snapshots: Snapshots = new Map()
  let header: CheckpointHeader | undefined
  let end: (Totals & { sha256: string }) | undefined
  let position = 0
  const frames = readFrames(bytes, 1)
  let next = frames.next()
  for (; !next.done; next = frames.next()) {
    const { content, end: frameEnd } = next.value
    if (end) throw new DamagedData(path, position, 'there is something after its end')
    if (!header) header = headerOf(path, content, kind)
    else {
      const lines = content.split('\n').map((line) => readJSON(line) as Line)
      const [first] = lines
      if (first && 'end' in first) end = first
      else readStore(snapshots, lines, encode)
    }
    if (!end) digest.update(bytes.subarray(position, frameEnd))
    position = frameEnd
  }
  const ending = next.value
  // The user chooses the file of a backup, so it may be any file; the server chooses the file of a checkpoint.
  if (!header && kind === 'backup') throw new Error(`${path} is not a backup of Capstan, or its beginning is damaged`)
  if (ending.kind === 'damaged') throw new DamagedData(path, ending.at, ending.problem)
  if (!header || !end || ending.kind === 'torn') throw new DamagedData(path, bytes.length, 'it ends too early')
  const totals = { stores: snapshots.size, objects: sumOf(snapshots.values()) }
  if (end.stores !== totals.stores || end.objects !== totals.objects || end.sha256 !== digest.digest('hex'))
    throw new DamagedData(path, position, 'its content does not match the totals at its end')
  return { header, snapshots, totals, size: bytes.length }
}

function headerOf(path: string, content: string, kind: string): CheckpointHeader {
  const header = JSON.parse(content) as CheckpointHeader
  if (header.capstan !== kind) throw new Error(`${path} is not a ${kind} of Capstan`)
  rejectOtherFormats(path, header.format)
  return header
}

/** @throws Error naming both formats when the file has another format than this version reads */
export function rejectOtherFormats(path: string, format: number): void {
  if (format !== Format) throw new Error(`${path} has format ${format}, and this version reads format ${Format} only`)
}

function readStore(snapshots: Snapshots, [head, ...lines]: readonly Line[], encode: ObjectEncoding): void {
  const { store, revision } = head as { store: string; revision: number }
  const snapshot = snapshots.get(store) ?? { ...emptySnapshot(), revision }
  snapshots.set(store, snapshot)
  for (const line of lines as unknown as readonly { key: [string, string, string]; object: KubeObject }[]) {
    const [resource, namespace, name] = line.key
    snapshot.objects.set(line.key.join('/'), { key: { resource, namespace, name }, object: encode(line.object) })
  }
}

function sumOf(snapshots: Iterable<Snapshot>): number {
  let sum = 0
  for (const { objects } of snapshots) sum += objects.size
  return sum
}
