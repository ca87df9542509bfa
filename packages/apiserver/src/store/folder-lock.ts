/**
 * One process for a data folder, and the version of what is in it. Node has no locks on files; LevelDB takes one that the kernel
 * gives back however its owner ends, so an otherwise empty one lies in the folder. It is also what earlier versions look for, and
 * refuse by its version.
 */
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { messageOf } from '@capstan/kube'
import { ClassicLevel } from 'classic-level'
import { StateName } from './replace-state.ts'

export class FolderLock {
  readonly db: ClassicLevel<string, string>

  private constructor(db: ClassicLevel<string, string>) {
    this.db = db
  }

  /** @throws Error naming the folder when another process has it */
  static async take(folder: string): Promise<FolderLock> {
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      return new FolderLock(await opened(folder))
    } catch (err) {
      if (codeOf(err) === 'LEVEL_LOCKED')
        throw new Error(`Cannot open data folder ${folder}: it is in use by another process`, { cause: err })
      if (!existsSync(`${folder}/${StateName}`)) throw unusable(folder, err)
    }
    // It is damaged, and holds nothing that the state does not say as well.
    try {
      await ClassicLevel.destroy(folder)
      return new FolderLock(await opened(folder))
    } catch (err) {
      throw unusable(folder, err)
    }
  }

  /** Version of the layout; undefined for a folder that is new. @throws Error when it is of another version than this can read */
  async format(): Promise<'1' | '2' | undefined> {
    const format = await this.db.get('format')
    if (format === undefined || format === '1' || format === '2') return format
    throw new Error(
      `Cannot open data folder ${this.db.location}: it has format ${format}, and this version reads formats 1 and 2 only`,
    )
  }

  /** Durable once it resolves; whatever else an earlier version kept here goes. */
  async setFormat(format: '2'): Promise<void> {
    await this.db.put('format', format, { sync: true })
    await this.db.clear({ gt: 'format' })
  }

  release(): Promise<void> {
    return this.db.close()
  }
}

async function opened(folder: string): Promise<ClassicLevel<string, string>> {
  const db = new ClassicLevel<string, string>(folder)
  await db.open()
  return db
}

const unusable = (folder: string, err: unknown): Error =>
  new Error(`Cannot open data folder ${folder}: ${messageOf(causeOf(err) ?? err)}`, { cause: err })

const causeOf = (err: unknown): unknown => (err as { cause?: unknown }).cause
const codeOf = (err: unknown): string | undefined => (causeOf(err) as { code?: string } | undefined)?.code
