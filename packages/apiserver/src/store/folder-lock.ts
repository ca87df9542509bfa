/**
 * Locks a data folder for one process. Node has no API for file locks, but its built-in SQLite locks the file of a database. The lock is a
 * transaction on an empty file: it never ends and never writes. The kernel releases the lock however the process ends.
 *
 * Closing a file releases all locks that the process has on it, so no other code may open the lock file.
 */
import { truncateSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { messageOf } from '@capstan/kube'
import { makeFolder } from '@capstan/kube/node'
import { unusableFolder } from './damage.ts'

/** Same name and same mechanism as LevelDB's lock, which earlier versions took: old and new versions exclude each other. */
const LockName = 'LOCK'

/** Result codes of SQLite: https://www.sqlite.org/rescode.html */
const Busy = 5
const NotADatabase = 26

export class FolderLock {
  readonly #database: DatabaseSync

  private constructor(database: DatabaseSync) {
    this.#database = database
  }

  /** @throws Error naming the folder when another process, or this process, has the folder open */
  static async take(folder: string): Promise<FolderLock> {
    try {
      await makeFolder(folder, 0o700)
      return new FolderLock(lockOn(`${folder}/${LockName}`))
    } catch (err) {
      throw codeOf(err) === Busy
        ? unusableFolder(folder, 'it is in use by another process')
        : unusableFolder(folder, messageOf(err), err)
    }
  }

  release(): void {
    if (this.#database.isOpen) this.#database.close()
  }
}

function lockOn(path: string): DatabaseSync {
  try {
    return openLocked(path)
  } catch (err) {
    if (codeOf(err) !== NotADatabase) throw err
    // The file is not a database, so no process holds the lock: each process empties such a file before it locks it. If another process
    // empties the file at the same time, truncating it again changes nothing.
    truncateSync(path)
    return openLocked(path)
  }
}

function openLocked(path: string): DatabaseSync {
  const file = new DatabaseSync(path)
  try {
    file.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE')
    return file
  } catch (err) {
    file.close()
    throw err
  }
}

/** Result code without its extension, which is in the higher bits. */
const codeOf = (err: unknown): number => ((err as { errcode?: number }).errcode ?? 0) & 0xff
