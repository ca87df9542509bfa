/**
 * Version of a data folder's layout, in the file `format`. This file is outside of the state folder, so that a data folder that has lost its
 * state folder does not count as new.
 */
import { unusableFolder } from './damage.ts'
import type { Files } from './files.ts'

const Format = '2'
const FormatName = 'format'

/** Names of the LevelDB files that earlier versions wrote, except LOCK: this version locks the folder with that file, too. */
const LevelDBFile = /^(CURRENT|LOG|LOG\.old|MANIFEST-\d+|\d+\.(log|ldb))$/

/**
 * Reads the format of a folder. `current`: the format of this version. `old`: the folder is not new, but its format file must be written.
 * `undefined`: the folder has neither a format file nor the LevelDB file CURRENT, because it is new or lost its format file. The caller
 * checks whether the state exists.
 * @throws Error when this version cannot read the format
 */
export async function readFormat(files: Files, folder: string): Promise<'current' | 'old' | undefined> {
  const names = await files.list(folder)
  if (!names.includes(FormatName)) return names.includes('CURRENT') ? 'old' : undefined
  const format = (await files.read(`${folder}/${FormatName}`)).toString().trimEnd()
  if (format === Format) return 'current'
  // A format file without a number was truncated or damaged. The files of the state contain their own version.
  if (!/^\d+$/.test(format)) return 'old'
  throw unusableFolder(folder, `it has format ${format}, and this version reads format ${Format} only`)
}

/**
 * Writes the format file, and removes the LevelDB files of an earlier version. Must be called only when the state exists. Does not wait for
 * fsync: if the file is lost, the files of the state still contain their own version.
 */
export async function writeFormat(files: Files, folder: string): Promise<void> {
  const file = await files.open(`${folder}/${FormatName}`, 'create')
  try {
    await file.write(Buffer.from(`${Format}\n`), 0)
  } finally {
    await file.close()
  }
  for (const name of await files.list(folder)) if (LevelDBFile.test(name)) await files.remove(`${folder}/${name}`)
}
