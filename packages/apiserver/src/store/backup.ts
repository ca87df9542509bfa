/**
 * Backups of a data folder: one file with all its stores, checked frame by frame and as a whole. They are made from the files of the
 * folder, whether a server runs on it or not: what has been acknowledged is there, in files that are only ever added to.
 */
import type { Clock } from '@capstan/kube'
import { type Checkpoint, type CheckpointHeader, Format, readCheckpoint, stillsOf, writeCheckpoint } from './checkpoint.ts'
import { DamagedData } from './damage.ts'
import { type Files, nodeFiles, writeWhole } from './files.ts'
import { readFormat, writeFormat } from './folder-format.ts'
import { FolderLock } from './folder-lock.ts'
import { makeState } from './journal.ts'
import { replaceState, settleState, StateName } from './replace-state.ts'
import { type Salvaged, salvageState } from './salvage.ts'
import { readState } from './state-folder.ts'

/** What a backup holds. */
export interface Backup {
  /** Milliseconds since the epoch, by the clock of whoever made it. */
  readonly time: number
  readonly format: number
  readonly size: number
  readonly objects: number
  /** What could not be read of the folder, where that was wished: writes that were acknowledged are lost. */
  readonly damage?: readonly string[]
  readonly stores: readonly { readonly name: string; readonly revision: number; readonly objects: number }[]
}

export interface BackupOptions {
  /** The data folder, as `openDurable` takes it. */
  readonly folder: string
  readonly file: string
  readonly clock: Clock
  readonly files?: Files
}

/** Attempts to read a folder that a server is writing to: files that a checkpoint has replaced are gone in the midst of it. */
const Attempts = 5

export interface MakeBackupOptions extends BackupOptions {
  /** Of a folder that is damaged, takes what can be read. */
  readonly salvage?: boolean
}

/**
 * Writes a backup of what has been acknowledged, readable by the owner only, whole or not at all.
 * @throws DamagedData when the folder cannot be read
 */
export async function backUp(options: MakeBackupOptions): Promise<Backup> {
  const { folder, file, clock, files = nodeFiles, salvage = false } = options
  const { images, damage } = await readAcknowledged(files, folder).catch((err: unknown) => {
    if (!salvage || !(err instanceof DamagedData)) throw err
    return salvageState(files, `${folder}/${StateName}`)
  })
  const header: CheckpointHeader = { capstan: 'backup', format: Format, time: clock.now() }
  await writeWhole(files, file, async (opened) => {
    await writeCheckpoint(opened, header, stillsOf(images))
  })
  const made = await checkBackup(file, files)
  return damage.length === 0 ? made : { ...made, damage: damage.map(({ message }) => message) }
}

/** Reads a backup from beginning to end. @throws DamagedData when it is not what was written, Error when it is no backup or of a later version */
export async function checkBackup(file: string, files: Files = nodeFiles): Promise<Backup> {
  return summaryOf(await readCheckpoint(files, file, 'backup'))
}

export interface RestoreOptions extends BackupOptions {
  /** Replaces what is there. */
  readonly force?: boolean
  /**
   * How far revisions go on above those of the backup. Whoever saw a revision that the backup does not have is told that it is gone,
   * and no revision is ever used twice. Upstream: etcdutl snapshot restore --bump-revision --mark-compacted.
   */
  readonly bumpRevision?: number
}

export const DefaultBump = 1_000_000_000

/**
 * Makes the data folder what the backup says. Cut short, the folder is as it was before, or as it is to be.
 * @throws Error when there is data already and `force` is not given, or a server runs on it
 */
export async function restoreBackup(options: RestoreOptions): Promise<Backup> {
  const { folder, file, clock, files = nodeFiles, force = false, bumpRevision = DefaultBump } = options
  const checkpoint = await readCheckpoint(files, file, 'backup')
  for (const image of checkpoint.images.values()) {
    image.revision += bumpRevision
    if (!Number.isSafeInteger(image.revision))
      throw new Error(`${file} cannot be restored: revision ${image.revision} is too large`)
  }
  const lock = await FolderLock.take(folder)
  try {
    const format = await readFormat(files, folder)
    await settleState(files, folder)
    if (!force && (format || (await files.list(folder)).includes(StateName)))
      throw new Error(`Data folder ${folder} holds data already: nothing has been changed. --force replaces it`)
    await replaceState(files, folder, (made) => makeState(files, made, checkpoint.images, clock.now()))
    await writeFormat(files, folder)
  } finally {
    lock.release()
  }
  return summaryOf(checkpoint)
}

async function readAcknowledged(files: Files, folder: string): Promise<Salvaged> {
  if (!(await files.list(folder)).includes(StateName)) throw new Error(`There is no state in data folder ${folder}`)
  for (let attempt = 1; ; attempt++) {
    try {
      return { ...(await readState(files, `${folder}/${StateName}`, 'acknowledged')), damage: [] }
    } catch (err) {
      if (attempt === Attempts || !(err instanceof DamagedData || isGone(err))) throw err
    }
  }
}

/** A file was listed, and removed before it was opened: a newer checkpoint has what it held. */
const isGone = (err: unknown): boolean => (err as NodeJS.ErrnoException).code === 'ENOENT'

function summaryOf({ header, images, totals, size }: Checkpoint): Backup {
  const stores = [...images].map(([name, { revision, objects }]) => ({ name, revision, objects: objects.size }))
  return { time: header.time, format: header.format, size, objects: totals.objects, stores }
}
