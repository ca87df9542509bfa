/**
 * A simulated disk for tests, with the failures of real disks. Bytes that are not synced are only in the page cache: they survive the death of
 * the process, but a loss of power removes an arbitrary part of them, sector by sector. Any step, which is one operation of `Files` or
 * `OpenFile`, can fail. A failed sync writes an arbitrary part of the bytes.
 */
import type { Random } from '@capstan/kube'
import type { Files, OpenFile } from './files.ts'

const Sector = 512

interface File {
  /** Content that readers see. */
  visible: Buffer
  /** Content on the disk. */
  durable: Buffer
  /** Changes that are not on the disk yet, in order. */
  pending: Change[]
}

type Change =
  | { readonly kind: 'write'; readonly position: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly size: number }

/** A change of file names. Such changes reach the disk in order, at the latest when any folder is synced. */
type NameChange = (names: Map<string, File>) => void

export class SimulatedDisk implements Files {
  readonly #random: Random
  #visible = new Map<string, File>()
  #durable = new Map<string, File>()
  #pending: NameChange[] = []
  /** Remaining steps; the process dies during the last of them. */
  #remainingSteps = Infinity
  /** Called before each step in which the process neither dies nor is dead already. When it throws, the step fails with that error. */
  beforeStep: (step: string, path: string) => void = () => {}
  /** Number of steps so far. */
  steps = 0
  /** Number of restarts. File handles that were opened before the last restart are invalid. */
  #life = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** Makes the process die during one of the next steps: with `steps` 1, during the next step. This step may be done in part. */
  dieAfter(steps: number): void {
    this.#remainingSteps = steps
  }

  get isDead(): boolean {
    return this.#remainingSteps <= 0
  }

  /** Starts another process on the files as they are after a crash of the process or a loss of power. Ends the old process if it still lives. */
  restart(after: 'crash' | 'loss of power'): void {
    this.#remainingSteps = Infinity
    this.#life++
    if (after === 'crash') return
    // Name changes reach the disk in order, so only the last changes may be missing.
    const durableCount = Math.floor(this.#random.next() * (this.#pending.length + 1))
    for (const change of this.#pending.slice(0, durableCount)) change(this.#durable)
    this.#pending = []
    for (const file of new Set(this.#durable.values())) {
      for (const change of file.pending) this.#writeInPart(file, change)
      file.pending = []
      file.visible = Buffer.from(file.durable)
    }
    this.#visible = new Map(this.#durable)
  }

  /** Returns another disk with the content that readers of this disk see. On the copy, all of it is durable. */
  copy(): SimulatedDisk {
    const copy = new SimulatedDisk(this.#random)
    for (const [path, { visible: content }] of this.#visible)
      copy.#visible.set(path, { visible: content, durable: content, pending: [] })
    copy.#durable = new Map(copy.#visible)
    return copy
  }

  get paths(): string[] {
    return [...this.#visible.keys()].sort()
  }

  /** Changes the content of a file on the disk, as a defect of the disk does. Bytes of the file that are not synced are lost. */
  damage(path: string, change: (bytes: Buffer) => Buffer): void {
    const file = this.#file(path)
    file.durable = change(Buffer.from(file.durable))
    file.visible = Buffer.from(file.durable)
    file.pending = []
  }

  async open(path: string, mode: 'create' | 'existing'): Promise<OpenFile> {
    await this.#step('open', path)
    if (mode === 'create') {
      const created: File = { visible: Buffer.alloc(0), durable: Buffer.alloc(0), pending: [] }
      this.#changeNames((names) => names.set(path, created))
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
          // A failed sync drops the data that it could not write: the next sync succeeds without it.
          for (const change of file.pending.splice(0)) this.#writeInPart(file, change)
        })
        for (const change of file.pending.splice(0)) file.durable = changed(file.durable, change)
      },
      close: () => step('close'),
    }
  }

  async read(path: string): Promise<Buffer> {
    await this.#step('read', path)
    return Buffer.from(this.#file(path).visible)
  }

  async list(folder: string): Promise<string[]> {
    await this.#step('list', folder)
    const within = [...this.#visible.keys()].filter((path) => path.startsWith(`${folder}/`))
    return [...new Set(within.map((path) => path.slice(folder.length + 1).split('/')[0]!))]
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#step('rename', to)
    this.#changeNames((names) => {
      for (const [path, file] of Array.from(names)) {
        if (path !== from && !path.startsWith(`${from}/`)) continue
        names.delete(path)
        names.set(`${to}${path.slice(from.length)}`, file)
      }
    })
  }

  async remove(path: string): Promise<void> {
    await this.#step('remove', path)
    this.#changeNames((names) => {
      for (const name of names.keys()) if (name === path || name.startsWith(`${path}/`)) names.delete(name)
    })
  }

  async makeFolder(path: string): Promise<void> {
    await this.#step('makeFolder', path)
  }

  async syncFolder(path: string): Promise<void> {
    await this.#step('syncFolder', path)
    for (const change of this.#pending.splice(0)) change(this.#durable)
  }

  #file(path: string): File {
    const file = this.#visible.get(path)
    if (!file) throw Object.assign(new Error(`ENOENT: no such file or directory, open '${path}'`), { code: 'ENOENT' })
    return file
  }

  /**
   * Counts the step. @throws when the process is already dead, when it dies in this step, or when `beforeStep` throws. In the last two
   * cases, first calls `inPart`, which does a part of the step.
   */
  async #step(name: string, path: string, inPart?: () => void): Promise<void> {
    await Promise.resolve()
    this.steps++
    if (this.isDead) throw new Error('the process is dead')
    if (--this.#remainingSteps <= 0) {
      inPart?.()
      throw new Error('the process is dead')
    }
    try {
      this.beforeStep(name, path)
    } catch (err) {
      inPart?.()
      throw err
    }
  }

  #changeNames(change: NameChange): void {
    change(this.#visible)
    this.#pending.push(change)
  }

  #change(file: File, change: Change): void {
    file.visible = changed(file.visible, change)
    file.pending.push(change)
  }

  /**
   * Writes a random subset of the sectors of a change to the disk. The other sectors keep their content; a gap beyond the old end of the
   * file contains zeros. A truncation happens completely or not at all.
   */
  #writeInPart(file: File, change: Change): void {
    if (change.kind === 'truncate') {
      if (this.#random.next() < 0.5) file.durable = changed(file.durable, change)
      return
    }
    const { position, bytes } = change
    for (let from = 0; from < bytes.length; ) {
      const to = Math.min(bytes.length, (Math.floor((position + from) / Sector) + 1) * Sector - position)
      if (this.#random.next() < 0.5)
        file.durable = changed(file.durable, { kind: 'write', position: position + from, bytes: bytes.subarray(from, to) })
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
