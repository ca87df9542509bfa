/**
 * State that survives: one data folder, many named stores, one log. What the stores of a folder commit at the same time shares one
 * synced write (`journal.ts`). All of it is read when the folder is opened.
 *
 * Layout:
 *   state/  checkpoints, logs and the mark: see `state-folder.ts`
 *   format  the version of the layout
 *   LOCK    for one process at a time
 */
import { type Clock, type Logger, silent } from '@capstan/kube'
import { CoreStore, type Log, type StoreOptions } from './core.ts'
import { DamagedData, unopened } from './damage.ts'
import { type Files, nodeFiles } from './files.ts'
import { readFormat, writeFormat } from './folder-format.ts'
import { FolderLock } from './folder-lock.ts'
import { emptyImage } from './image.ts'
import { Journal, makeState } from './journal.ts'
import { type Hold, holdObjects } from './packed.ts'
import { replaceState, settleState, StateName } from './replace-state.ts'
import type { Store } from './store.ts'

/** The stores of one data folder. */
export interface DurableStores {
  /** The store of that name, empty when it is new. Opened once: the same name gives the same store until that is closed. */
  store(name: string, options?: StoreOptions): Promise<Store>
  /** Deletes a store with all it holds. */
  remove(name: string): Promise<void>
  close(): Promise<void>
}

export interface DurableOptions {
  readonly clock: Clock
  /** Told when the folder takes no writes, and when it does again. */
  readonly log?: Logger
  /** Absent: those of this machine. */
  readonly files?: Files
  /** Whether a write waits for the disk; else what the operating system has not written yet is lost with the machine (not with the process). */
  readonly sync?: boolean
  /** Bytes that the log may have before it is begun anew; less than 4 MB is for tests. */
  readonly checkpointAfter?: number
  /** How what is stored is held. Absent: as objects. */
  readonly hold?: Hold
}

/** Opens a data folder, made when absent. @throws Error naming it when another process has it, a later version wrote it, or it is damaged */
export async function openDurable(folder: string, options: DurableOptions): Promise<DurableStores> {
  const { clock, log = silent, files = nodeFiles, sync = true, checkpointAfter = 4 * 1024 * 1024, hold = holdObjects } = options
  const lock = await FolderLock.take(folder)
  let journal: Journal
  try {
    await prepare(folder, files, clock)
    journal = await Journal.open(`${folder}/${StateName}`, { clock, log, files, sync, checkpointAfter, hold })
  } catch (err) {
    lock.release()
    throw err instanceof DamagedData ? unreadable(folder, err) : isOfSystem(err) ? unopened(folder, err.message, err) : err
  }

  return storesOf(journal, clock, hold, lock)
}

/** The stores of a state folder that nobody else has open: `lock` sees to that, and is kept as long as any store is. */
export function storesOf(journal: Journal, clock: Clock, hold: Hold = holdObjects, lock?: FolderLock): DurableStores {
  const open = new Map<string, Promise<Store>>()
  return {
    store(name, storeOptions) {
      let opened = open.get(name)
      if (!opened) {
        const { changes, ...image } = journal.images.get(name) ?? emptyImage()
        const objects = image.objects.values()
        const store = new CoreStore(logOf(name), { ...image, objects, changes }, { clock, hold, ...storeOptions })
        const kept = journal.images.get(name)
        if (kept) kept.changes = []
        open.set(name, (opened = Promise.resolve(store)))
      }
      return opened
    },
    async remove(name) {
      await (await open.get(name))?.close()
      if (journal.images.has(name)) await journal.remove(name)
    },
    async close() {
      await Promise.all([...open.values()].map(async (store) => (await store).close()))
      await journal.close()
      lock?.release()
    },
  }

  function logOf(name: string): Log {
    return {
      append: (changes, time) => journal.append(name, changes, time),
      get failure() {
        return journal.failure
      },
      close(changes) {
        open.delete(name)
        const image = journal.images.get(name)
        if (image) image.changes = [...changes]
        return Promise.resolve()
      },
    }
  }
}

/** Sees to it that there is a state to open: made when the folder is new, or put in place when a restore was cut short. */
async function prepare(folder: string, files: Files, clock: Clock): Promise<void> {
  const format = await readFormat(files, folder)
  await settleState(files, folder)
  const hasState = (await files.list(folder)).includes(StateName)
  if (format && !hasState) throw new DamagedData(`${folder}/${StateName}`, undefined, 'it is missing')
  if (!hasState) await replaceState(files, folder, (made) => makeState(files, made, new Map(), clock.now()))
  if (format !== 'current') await writeFormat(files, folder)
}

/** Of a disk that is full, or a folder that may not be read: the system says what, and not where. */
const isOfSystem = (err: unknown): err is NodeJS.ErrnoException => (err as NodeJS.ErrnoException).code !== undefined

/** What to do about damage is said where it is met. */
const unreadable = (folder: string, damage: DamagedData): Error =>
  unopened(
    folder,
    `${damage.message}. Acknowledged writes may be lost: restore a backup with ` +
      '`capstan restore FILE --data DIR --force`, or keep what can be read with `capstan backup FILE --salvage --data DIR`',
    damage,
  )
