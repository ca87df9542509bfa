/**
 * Backups of a data folder: one file with all its stores. The file consists of frames with checksums; the last frame has a digest of the
 * others. A backup is made from the files of the folder, even while a server uses them: acknowledged writes are in files that only grow,
 * until a newer checkpoint replaces them.
 */
import type { Clock } from '@capstan/kube'
import { type Checkpoint, type CheckpointHeader, Format, readCheckpoint, storeSnapshots, writeCheckpoint } from './checkpoint.ts'
import { DamagedData } from './damage.ts'
import { type Files, nodeFiles, writeAtomically } from './files.ts'
import { readFormat, writeFormat } from './folder-format.ts'
import { FolderLock } from './folder-lock.ts'
import { makeState } from './journal.ts'
import { replaceState, finishReplacement, StateName } from './replace-state.ts'
import { type Salvaged, salvageState } from './salvage.ts'
import { readState } from './state-folder.ts'

/** Summary of a backup. */
export interface Backup {
  /** Creation time in milliseconds since the epoch, by the clock of the process that made the backup. */
  readonly time: number
  /** Format version of the file. */
  readonly format: number
  /** Size of the file in bytes. */
  readonly size: number
  /** Number of objects in all stores. */
  readonly objects: number
  /** With `salvage`: parts of the folder that could not be read. Acknowledged writes may be missing from the backup. */
  readonly damage?: readonly string[]
  readonly stores: readonly { readonly name: string; readonly revision: number; readonly objects: number }[]
}

export interface BackupOptions {
  /** Path of the data folder. */
  readonly folder: string
  /** Path of the backup. */
  readonly file: string
  readonly clock: Clock
  /** Default: the file system of this machine. */
  readonly files?: Files
}

/** Maximum attempts to read a folder while a server writes to it: a checkpoint may remove files during an attempt. */
const Attempts = 5

export interface MakeBackupOptions extends BackupOptions {
  /** Whether to back up the readable data of a damaged folder, instead of failing. Default: false. */
  readonly salvage?: boolean
}

/**
 * Writes a backup of all acknowledged writes (with `salvage`, of those that can be read), completely or not at all; only the
 * owner can read the file. @throws DamagedData when the folder is damaged, Error when it has no state
 */
export async function backUp(options: MakeBackupOptions): Promise<Backup> {
  const { folder, file, clock, files = nodeFiles, salvage = false } = options
  const { snapshots, damage } = await readAcknowledged(files, folder).catch((err: unknown) => {
    if (!salvage || !(err instanceof DamagedData)) throw err
    return salvageState(files, `${folder}/${StateName}`)
  })
  const header: CheckpointHeader = { capstan: 'backup', format: Format, time: clock.now() }
  await writeAtomically(files, file, async (opened) => {
    await writeCheckpoint(opened, header, storeSnapshots(snapshots))
  })
  const backup = await checkBackup(file, files)
  return damage.length === 0 ? backup : { ...backup, damage: damage.map(({ message }) => message) }
}

/**
 * Reads a whole backup to verify it. @throws Error when the file is not a backup, has another format or is damaged at its beginning;
 * DamagedData when it is damaged elsewhere
 */
export async function checkBackup(file: string, files: Files = nodeFiles): Promise<Backup> {
  return summaryOf(await readCheckpoint(files, file, 'backup'))
}

export interface RestoreOptions extends BackupOptions {
  /** Whether to replace existing data. Default: false. */
  readonly force?: boolean
  /**
   * Added to the revisions of the backup. If at most this number of revisions followed the backup, a client that saw one of
   * them gets Expired, and no revision is used twice. Default: `DefaultBump`. Upstream: etcdutl snapshot restore
   * --bump-revision --mark-compacted.
   */
  readonly bumpRevision?: number
}

/** Default of `RestoreOptions.bumpRevision`. */
export const DefaultBump = 1_000_000_000

/**
 * Replaces the data folder by a backup. If the process crashes meanwhile, the next start finds either the old or the restored data.
 * @throws Error when the folder contains data and `force` is not set, a server uses the folder, or a revision would become too large; and
 * the errors of `checkBackup`
 */
export async function restoreBackup(options: RestoreOptions): Promise<Backup> {
  const { folder, file, clock, files = nodeFiles, force = false, bumpRevision = DefaultBump } = options
  const checkpoint = await readCheckpoint(files, file, 'backup')
  for (const snapshot of checkpoint.snapshots.values()) {
    snapshot.revision += bumpRevision
    if (!Number.isSafeInteger(snapshot.revision))
      throw new Error(`${file} cannot be restored: revision ${snapshot.revision} is too large`)
  }
  const lock = await FolderLock.take(folder)
  try {
    const format = await readFormat(files, folder)
    await finishReplacement(files, folder)
    if (!force && (format || (await files.list(folder)).includes(StateName)))
      throw new Error(`Data folder ${folder} holds data already: nothing has been changed. --force replaces it`)
    await replaceState(files, folder, (newFolder) => makeState(files, newFolder, checkpoint.snapshots, clock.now()))
    await writeFormat(files, folder)
  } finally {
    lock.release()
  }
  return summaryOf(checkpoint)
}

async function readAcknowledged(files: Files, folder: string): Promise<Salvaged> {
  if (!(await files.list(folder)).includes(StateName)) throw new Error(`There is no state in data folder ${folder}`)
  for (let attempt = 1; ; attempt++) {
    const isLast = attempt === Attempts
    try {
      const state = await readState(files, `${folder}/${StateName}`, 'acknowledged')
      if (state.isMarkerIntact) return { ...state, damage: [] }
      // One copy of the commit marker cannot be read. If a server is writing it now, a later attempt can read it. Otherwise it is damaged,
      // and may have been the newer copy: then all readable writes count as acknowledged, as when a server starts.
      if (isLast) return { ...(await readState(files, `${folder}/${StateName}`, 'everything')), damage: [] }
    } catch (err) {
      if (isLast || !(err instanceof DamagedData || isMissingFile(err))) throw err
    }
  }
}

/** Reports whether a listed file was removed before it was opened: a newer checkpoint contains its data. */
const isMissingFile = (err: unknown): boolean => (err as NodeJS.ErrnoException).code === 'ENOENT'

function summaryOf({ header, snapshots, totals, size }: Checkpoint): Backup {
  const stores = [...snapshots].map(([name, { revision, objects }]) => ({ name, revision, objects: objects.size }))
  return { time: header.time, format: header.format, size, objects: totals.objects, stores }
}
