/** Records in a data folder which process uses it, so that the error of a second process can name the first. */
import { openDurable } from '@capstan/apiserver'
import { type Clock, messageOf } from '@capstan/kube'
import type { Stores } from '@capstan/lab'
import { readFile, rm, writeFile } from 'node:fs/promises'
import type { DataFolder } from './data-folder.ts'

interface FolderOwner {
  readonly pid: number
  readonly url: string
}

/**
 * Opens the durable stores of a data folder.
 *
 * @throws Error for a folder in use; it names the pid and URL of the record, if there is one and the process is running
 */
export async function openFolder(folder: DataFolder, clock: Clock): Promise<Stores> {
  try {
    return await openDurable(folder.database, { clock })
  } catch (err) {
    if (!messageOf(err).endsWith('it is in use by another process')) throw err
    const owner = await readOwner(folder)
    if (!owner || !isRunning(owner.pid)) throw err
    throw new Error(`Cannot open data folder ${folder.path}: process ${owner.pid} uses it and serves ${owner.url}`)
  }
}

/** Records this process as the owner. The returned function removes the record. */
export async function recordOwner(folder: DataFolder, owner: FolderOwner): Promise<() => Promise<void>> {
  await writeFile(folder.owner, `${JSON.stringify(owner)}\n`)
  return () => rm(folder.owner, { force: true })
}

/**
 * Returns the record; `undefined` if it is absent or unreadable. Only `capstan up` writes a record, once it serves. A killed process leaves its
 * record, but not its lock: another command may then use the folder.
 */
async function readOwner(folder: DataFolder): Promise<FolderOwner | undefined> {
  try {
    return JSON.parse(await readFile(folder.owner, 'utf8')) as FolderOwner
  } catch {
    return undefined
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (err) {
    // The process exists and belongs to another user.
    return (err as NodeJS.ErrnoException).code === 'EPERM'
  }
}
