/**
 * All stores of a folder in one file: what the log begins from, and what a backup is. The first frame says what the file is, the
 * last how much there must be in it, with a digest of everything before.
 */
import { readJSON } from '@capstan/kube'
import { createHash } from 'node:crypto'
import type { KubeObject } from '@capstan/kube'
import { DamagedData } from './damage.ts'
import type { Files, OpenFile } from './files.ts'
import { encodeFrame, readFrames } from './frame.ts'
import { emptyImage, type Image, type Images } from './image.ts'
import { type Hold, holdObjects, jsonOf } from './packed.ts'

/** Version of this layout, and that of the log. A reader refuses what is newer by name. */
export const Format = 2

export interface CheckpointHeader {
  readonly capstan: 'checkpoint' | 'backup'
  readonly format: number
  /** When it was made, milliseconds since the epoch. */
  readonly time: number
}

export interface Totals {
  readonly stores: number
  readonly objects: number
}

/** One store as it was when somebody asked: the map of an `Image` goes on changing. */
export interface Still {
  readonly store: string
  readonly revision: number
  readonly objects: readonly {
    readonly key: { resource: string; namespace: string; name: string }
    readonly object: KubeObject
  }[]
}

export const stillsOf = (images: Images): Still[] =>
  [...images].map(([store, { revision, objects }]) => ({ store, revision, objects: [...objects.values()] }))

type Line =
  | { readonly store: string; readonly revision: number }
  | { readonly key: readonly [resource: string, namespace: string, name: string]; readonly object: KubeObject }
  | (Totals & { readonly end: true; readonly sha256: string })

/** Characters of content to put into one frame: small enough that a write of one holds nobody up. */
const FrameSize = 256 * 1024

/** Writes frame by frame, so that whatever else runs in this process gets its turn. Gives the size in bytes. */
export async function writeCheckpoint(file: OpenFile, header: CheckpointHeader, stills: readonly Still[]): Promise<number> {
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
  for (const still of stills) {
    const head = JSON.stringify({ store: still.store, revision: still.revision } satisfies Line)
    let content = head
    for (const { key, object } of still.objects) {
      if (content.length > FrameSize) {
        digest.update(await write(content))
        content = head
      }
      content += `\n{"key":${JSON.stringify([key.resource, key.namespace, key.name])},"object":${jsonOf(object)}}`
      objects++
    }
    digest.update(await write(content))
  }
  const end: Line = { end: true, stores: stills.length, objects, sha256: digest.digest('hex') }
  await write(JSON.stringify(end))
  return size
}

export interface Checkpoint {
  readonly header: CheckpointHeader
  readonly images: Images
  readonly totals: Totals
  readonly size: number
}

/** @throws DamagedData when it is not what was written, Error when a later version wrote it or it is something else */
export async function readCheckpoint(
  files: Files,
  path: string,
  kind: CheckpointHeader['capstan'],
  hold: Hold = holdObjects,
): Promise<Checkpoint> {
  const bytes = await files.read(path)
  const digest = createHash('sha256')
  const images: Images = new Map()
  let header: CheckpointHeader | undefined
  let end: (Totals & { sha256: string }) | undefined
  let from = 0
  const frames = readFrames(bytes, 1)
  let next = frames.next()
  for (; !next.done; next = frames.next()) {
    const { content, end: to } = next.value
    if (end) throw new DamagedData(path, from, 'there is something after its end')
    if (!header) header = headerOf(path, content, kind)
    else {
      const lines = content.split('\n').map((line) => readJSON(line) as Line)
      const [first] = lines
      if (first && 'end' in first) end = first
      else readStore(images, lines, hold)
    }
    if (!end) digest.update(bytes.subarray(from, to))
    from = to
  }
  const ending = next.value
  // A checkpoint has its name from us; a backup is whatever somebody names.
  if (!header && kind === 'backup') throw new Error(`${path} is not a backup of Capstan, or its beginning is damaged`)
  if (ending.kind === 'damaged') throw new DamagedData(path, ending.at, ending.why)
  if (!header || !end || ending.kind === 'torn') throw new DamagedData(path, bytes.length, 'it ends too early')
  const totals = { stores: images.size, objects: sumOf(images.values()) }
  if (end.stores !== totals.stores || end.objects !== totals.objects || end.sha256 !== digest.digest('hex'))
    throw new DamagedData(path, from, 'it does not hold what its end says')
  return { header, images, totals, size: bytes.length }
}

function headerOf(path: string, content: string, kind: string): CheckpointHeader {
  const header = JSON.parse(content) as CheckpointHeader
  if (header.capstan !== kind) throw new Error(`${path} is not a ${kind} of Capstan`)
  refuseOtherFormats(path, header.format)
  return header
}

/** @throws Error naming the version that wrote the file, unless it is this one */
export function refuseOtherFormats(path: string, format: number): void {
  if (format !== Format) throw new Error(`${path} has format ${format}, and this version reads format ${Format} only`)
}

function readStore(images: Images, [head, ...lines]: readonly Line[], hold: Hold): void {
  const { store, revision } = head as { store: string; revision: number }
  const image = images.get(store) ?? { ...emptyImage(), revision }
  images.set(store, image)
  for (const line of lines as unknown as readonly { key: [string, string, string]; object: KubeObject }[]) {
    const [resource, namespace, name] = line.key
    image.objects.set(line.key.join('/'), { key: { resource, namespace, name }, object: hold(line.object) })
  }
}

function sumOf(images: Iterable<Image>): number {
  let sum = 0
  for (const { objects } of images) sum += objects.size
  return sum
}
