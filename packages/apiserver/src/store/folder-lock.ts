/**
 * One process for a data folder. Node has no locks on files; SQLite, which comes with it, takes one that the kernel gives back however
 * its owner ends. It is a transaction on a file with nothing in it that never ends: nothing is written.
 *
 * Closing a file gives back all locks that the process has on it: nothing else may open this one.
 */
import { truncateSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { messageOf } from '@capstan/kube'
import { unopened } from './damage.ts'

/** Of the same name, and by the same means, as the lock of LevelDB, which earlier versions took: they and this one keep each other out. */
const LockName = 'LOCK'

/** What SQLite says: https://www.sqlite.org/rescode.html */
const Busy = 5
const NotADatabase = 26

export class FolderLock {
  readonly #held: DatabaseSync

  private constructor(held: DatabaseSync) {
    this.#held = held
  }

  /** @throws Error naming the folder when another process has it, or this one already */
  static async take(folder: string): Promise<FolderLock> {
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      return new FolderLock(lockOn(`${folder}/${LockName}`))
    } catch (err) {
      throw codeOf(err) === Busy ? unopened(folder, 'it is in use by another process') : unopened(folder, messageOf(err), err)
    }
  }

  release(): void {
    if (this.#held.isOpen) this.#held.close()
  }
}

function lockOn(path: string): DatabaseSync {
  try {
    return held(path)
  } catch (err) {
    if (codeOf(err) !== NotADatabase) throw err
    // Something has been written over it. Nobody held it just now, and for whoever has taken it since, nothing is what should be in it.
    truncateSync(path)
    return held(path)
  }
}

function held(path: string): DatabaseSync {
  const file = new DatabaseSync(path)
  try {
    file.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE')
    return file
  } catch (err) {
    file.close()
    throw err
  }
}

/** Without what is said of it more closely, which is in the higher bits. */
const codeOf = (err: unknown): number => ((err as { errcode?: number }).errcode ?? 0) & 0xff
