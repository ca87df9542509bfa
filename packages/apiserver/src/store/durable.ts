/**
 * Durable state: a data folder with many named stores, which write to the same log. Stores that commit at the same time share one fsync
 * (`journal.ts`). All state is read when the folder is opened.
 *
 * Layout:
 *   state/  checkpoints, logs and the commit marker: see `state-folder.ts`
 *   format  the version of the layout
 *   LOCK    lock file: one process at a time can open the folder
 */
import { type Clock, type Logger, silent } from '@capstan/kube'
import { CoreStore, type Log, type StoreOptions } from './core.ts'
import { DamagedData, unusableFolder } from './damage.ts'
import { type Files, nodeFiles } from './files.ts'
import { readFormat, writeFormat } from './folder-format.ts'
import { FolderLock } from './folder-lock.ts'
import { emptySnapshot } from './snapshot.ts'
import { Journal, makeState } from './journal.ts'
import { type ObjectEncoding, plainObjects } from './packed.ts'
import { replaceState, finishReplacement, StateName } from './replace-state.ts'
import type { Store } from './store.ts'

/** The stores of one data folder. */
export interface DurableStores {
  /** Returns the store of this name, empty when it is new. Returns the same store for the same name until the store is closed. */
  store(name: string, options?: StoreOptions): Promise<Store>
  /** Deletes a store with its content. */
  remove(name: string): Promise<void>
  /** Closes all stores and the folder, which can then be opened again. */
  close(): Promise<void>
}

export interface DurableOptions {
  readonly clock: Clock
  /** Receives a message when the folder cannot be written, when it can be written again, and about other problems with its files. */
  readonly log?: Logger
  /** Default: the file system of this machine. */
  readonly files?: Files
  /**
   * Whether a write waits for fsync; otherwise a crash of the machine, but not of the process, loses data that the operating system
   * has not written yet. Default: true.
   */
  readonly sync?: boolean
  /**
   * Size of a log in bytes after which the next log begins. If the checkpoint that was last read or written is larger, its size applies
   * instead. Default: 4 MiB.
   */
  readonly checkpointAfter?: number
  /** Encoding of stored objects. Default: plain objects. */
  readonly encode?: ObjectEncoding
}

/**
 * Opens a data folder, and creates it when absent.
 *
 * @throws Error that names the folder if it is already open in this process or another, has a format that this version cannot read, or is
 *   damaged, or if the file system fails
 */
export async function openDurable(folder: string, options: DurableOptions): Promise<DurableStores> {
  const {
    clock,
    log = silent,
    files = nodeFiles,
    sync = true,
    checkpointAfter = 4 * 1024 * 1024,
    encode = plainObjects,
  } = options
  const lock = await FolderLock.take(folder)
  let journal: Journal
  try {
    await prepare(folder, files, clock)
    journal = await Journal.open(`${folder}/${StateName}`, { clock, log, files, sync, checkpointAfter, encode })
  } catch (err) {
    lock.release()
    throw err instanceof DamagedData
      ? withRepairAdvice(folder, err)
      : isSystemError(err)
        ? unusableFolder(folder, err.message, err)
        : err
  }

  return storesOf(journal, clock, encode, lock)
}

/** Returns the stores of a state folder, which `journal` has read. `lock` is released when the stores are closed. */
export function storesOf(
  journal: Journal,
  clock: Clock,
  encode: ObjectEncoding = plainObjects,
  lock?: FolderLock,
): DurableStores {
  const open = new Map<string, Promise<Store>>()
  return {
    store(name, storeOptions) {
      let opened = open.get(name)
      if (!opened) {
        const { changes, ...snapshot } = journal.snapshots.get(name) ?? emptySnapshot()
        const objects = snapshot.objects.values()
        const store = new CoreStore(logOf(name), { ...snapshot, objects, changes }, { clock, encode, ...storeOptions })
        const openedSnapshot = journal.snapshots.get(name)
        if (openedSnapshot) openedSnapshot.changes = []
        open.set(name, (opened = Promise.resolve(store)))
      }
      return opened
    },
    async remove(name) {
      await (await open.get(name))?.close()
      if (journal.snapshots.has(name)) await journal.remove(name)
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
        const snapshot = journal.snapshots.get(name)
        if (snapshot) snapshot.changes = [...changes]
        return Promise.resolve()
      },
    }
  }
}

/** Completes or undoes an interrupted restore, creates the state of a new folder, and writes the format file if it is missing or damaged. */
async function prepare(folder: string, files: Files, clock: Clock): Promise<void> {
  const format = await readFormat(files, folder)
  await finishReplacement(files, folder)
  const hasState = (await files.list(folder)).includes(StateName)
  if (format && !hasState) throw new DamagedData(`${folder}/${StateName}`, undefined, 'it is missing')
  if (!hasState) await replaceState(files, folder, (newFolder) => makeState(files, newFolder, new Map(), clock.now()))
  if (format !== 'current') await writeFormat(files, folder)
}

/** Reports whether the error comes from the operating system. Its text need not name the data folder. */
const isSystemError = (err: unknown): err is NodeJS.ErrnoException => (err as NodeJS.ErrnoException).code !== undefined

/** Adds to the error how the user can repair the folder. */
const withRepairAdvice = (folder: string, damage: DamagedData): Error =>
  unusableFolder(
    folder,
    `${damage.message}. Acknowledged writes may be lost: restore a backup with ` +
      '`capstan restore FILE --data DIR --force`, or keep what can be read with `capstan backup FILE --salvage --data DIR`',
    damage,
  )
