/**
 * Locks a data folder for one process. Node has no API for file locks, but its built-in SQLite locks the file of a database. The lock is an
 * exclusive transaction on an empty file. The transaction writes nothing, and stays open until `release`. The kernel releases the lock when
 * the process ends, even after a crash.
 *
 * When a process closes a file, it loses all its locks on that file, so no other code may open the lock file.
 */
import { truncateSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { messageOf } from '@capstan/kube'
import { makeFolder } from '@capstan/kube/node'
import { unusableFolder } from './damage.ts'

/** The same name and mechanism as the lock of LevelDB, which earlier versions used: an earlier version and this one exclude each other. */
const LockName = 'LOCK'

/** Result codes of SQLite: https://www.sqlite.org/rescode.html */
const Busy = 5
const NotADatabase = 26

export class FolderLock {
  readonly #database: DatabaseSync

  private constructor(database: DatabaseSync) {
    this.#database = database
  }

  /**
   * Creates the folder when absent, and locks it. @throws Error that names the folder, when it is already locked, by this process or
   * another, or when the file system fails
   */
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
    // The file is not a database, so no process holds the lock: each process empties such a file before locking it. If another process
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

/** Returns the primary result code of an error of SQLite: extended codes add higher bits. 0 for other errors. */
const codeOf = (err: unknown): number => ((err as { errcode?: number }).errcode ?? 0) & 0xff
