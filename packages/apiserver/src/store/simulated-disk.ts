/**
 * A disk for tests that is as bad as disks are allowed to be. What has not been synced is in memory only: a process that dies leaves it
 * there, a loss of power takes any part of it, sector by sector. Any step can fail, and of a sync that failed nobody learns what it did.
 */
import type { Random } from '@capstan/kube'
import type { Files, OpenFile } from './files.ts'

const Sector = 512

interface File {
  /** What a reader sees. */
  seen: Buffer
  /** What is on the disk. */
  kept: Buffer
  /** What is still to be brought there, in order. */
  pending: Change[]
}

type Change =
  | { readonly kind: 'write'; readonly position: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly size: number }

/** A change of names, brought to the disk in order when their folder is synced, or earlier. */
type Naming = (names: Map<string, File>) => void

export class SimulatedDisk implements Files {
  readonly #random: Random
  #seen = new Map<string, File>()
  #kept = new Map<string, File>()
  #pending: Naming[] = []
  /** Steps until the process dies in the middle of one. */
  #left = Infinity
  /** Called before each step: throws what the step is to fail with. */
  failing: (step: string, path: string) => void = () => {}
  /** Steps so far. */
  steps = 0
  /** Handles of processes that have died are of no use to anybody. */
  #life = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** The process dies in the `steps`th step from now; what it was about may have been done in part. */
  dieAfter(steps: number): void {
    this.#left = steps
  }

  get isDead(): boolean {
    return this.#left <= 0
  }

  /** Another process finds what the dead one left. */
  restart(after: 'death' | 'loss of power'): void {
    this.#left = Infinity
    this.#life++
    if (after === 'death') return
    // Names change in order: some of the last may not have got there.
    const arrived = Math.floor(this.#random.next() * (this.#pending.length + 1))
    for (const naming of this.#pending.slice(0, arrived)) naming(this.#kept)
    this.#pending = []
    for (const file of new Set(this.#kept.values())) {
      for (const change of file.pending) this.#arriveInPart(file, change)
      file.pending = []
      file.seen = Buffer.from(file.kept)
    }
    this.#seen = new Map(this.#kept)
  }

  /** Another disk with the same files. */
  copy(): SimulatedDisk {
    const copy = new SimulatedDisk(this.#random)
    for (const [path, { seen }] of this.#seen) copy.#seen.set(path, { seen, kept: seen, pending: [] })
    copy.#kept = new Map(copy.#seen)
    return copy
  }

  get paths(): string[] {
    return [...this.#seen.keys()].sort()
  }

  /** Changes what is on the disk behind everybody's back. */
  damage(path: string, change: (bytes: Buffer) => Buffer): void {
    const file = this.#file(path)
    file.kept = change(Buffer.from(file.kept))
    file.seen = Buffer.from(file.kept)
    file.pending = []
  }

  async open(path: string, mode: 'create' | 'existing'): Promise<OpenFile> {
    await this.#step('open', path)
    if (mode === 'create') {
      const created: File = { seen: Buffer.alloc(0), kept: Buffer.alloc(0), pending: [] }
      this.#rename((names) => names.set(path, created))
    }
    const file = this.#file(path)
    const life = this.#life
    const step = async (name: string, inPart?: () => void) => {
      if (life !== this.#life) throw new Error(`${name} of a dead process`)
      await this.#step(name, path, inPart)
    }
    return {
      write: async (bytes, position) => {
        const change: Change = { kind: 'write', position, bytes: Buffer.from(bytes) }
        await step('write', () => {
          const length = Math.floor(this.#random.next() * bytes.length)
          this.#change(file, { ...change, bytes: change.bytes.subarray(0, length) })
        })
        this.#change(file, change)
      },
      truncate: async (size) => {
        await step('truncate')
        this.#change(file, { kind: 'truncate', size })
      },
      sync: async () => {
        await step('sync', () => {
          // What could not be written is forgotten: the next sync succeeds, and does not bring it either.
          for (const change of file.pending.splice(0)) this.#arriveInPart(file, change)
        })
        for (const change of file.pending.splice(0)) file.kept = changed(file.kept, change)
      },
      close: () => step('close'),
    }
  }

  async read(path: string): Promise<Buffer> {
    await this.#step('read', path)
    return Buffer.from(this.#file(path).seen)
  }

  async list(folder: string): Promise<string[]> {
    await this.#step('list', folder)
    const within = [...this.#seen.keys()].filter((path) => path.startsWith(`${folder}/`))
    return [...new Set(within.map((path) => path.slice(folder.length + 1).split('/')[0]!))]
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#step('rename', to)
    this.#rename((names) => {
      for (const [path, file] of Array.from(names)) {
        if (path !== from && !path.startsWith(`${from}/`)) continue
        names.delete(path)
        names.set(`${to}${path.slice(from.length)}`, file)
      }
    })
  }

  async remove(path: string): Promise<void> {
    await this.#step('remove', path)
    this.#rename((names) => {
      for (const name of names.keys()) if (name === path || name.startsWith(`${path}/`)) names.delete(name)
    })
  }

  async makeFolder(path: string): Promise<void> {
    await this.#step('makeFolder', path)
  }

  async syncFolder(path: string): Promise<void> {
    await this.#step('syncFolder', path)
    for (const naming of this.#pending.splice(0)) naming(this.#kept)
  }

  #file(path: string): File {
    const file = this.#seen.get(path)
    if (!file) throw Object.assign(new Error(`ENOENT: no such file or directory, open '${path}'`), { code: 'ENOENT' })
    return file
  }

  /** Others have their turn; then the step is done, or fails, and may have been done in part. */
  async #step(name: string, path: string, inPart?: () => void): Promise<void> {
    await Promise.resolve()
    this.steps++
    if (this.isDead) throw new Error('the process is dead')
    if (--this.#left <= 0) {
      inPart?.()
      throw new Error('the process is dead')
    }
    try {
      this.failing(name, path)
    } catch (err) {
      inPart?.()
      throw err
    }
  }

  #rename(naming: Naming): void {
    naming(this.#seen)
    this.#pending.push(naming)
  }

  #change(file: File, change: Change): void {
    file.seen = changed(file.seen, change)
    file.pending.push(change)
  }

  /** Any of its sectors, or none. A file is as long as the last thing that came makes it; what did not come is zeros. */
  #arriveInPart(file: File, change: Change): void {
    if (change.kind === 'truncate') {
      if (this.#random.next() < 0.5) file.kept = changed(file.kept, change)
      return
    }
    const { position, bytes } = change
    for (let from = 0; from < bytes.length; ) {
      const to = Math.min(bytes.length, (Math.floor((position + from) / Sector) + 1) * Sector - position)
      if (this.#random.next() < 0.5)
        file.kept = changed(file.kept, { kind: 'write', position: position + from, bytes: bytes.subarray(from, to) })
      from = to
    }
  }
}

function changed(bytes: Buffer, change: Change): Buffer {
  if (change.kind === 'truncate') {
    const result = Buffer.alloc(change.size)
    bytes.copy(result)
    return result
  }
  const result = Buffer.alloc(Math.max(bytes.length, change.position + change.bytes.length))
  bytes.copy(result)
  change.bytes.copy(result, change.position)
  return result
}
