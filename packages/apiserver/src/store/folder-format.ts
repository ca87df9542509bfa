/** The version of a data folder's layout. It stands beside the state, so that a folder whose state is missing is not taken for a new one. */
import { unopened } from './damage.ts'
import type { Files } from './files.ts'

const Format = '2'
const FormatName = 'format'

/** What LevelDB, which was in the folder before, leaves behind; but for its lock, which is the lock of the folder still. */
const LeftBehind = /^(CURRENT|LOG|LOG\.old|MANIFEST-\d+|\d+\.(log|ldb))$/

/**
 * `old` is a folder that is to have a state, and whose format has to be written; none a folder that is new.
 * @throws Error when it is of another version than this can read
 */
export async function readFormat(files: Files, folder: string): Promise<'current' | 'old' | undefined> {
  const names = await files.list(folder)
  if (!names.includes(FormatName)) return names.includes('CURRENT') ? 'old' : undefined
  const format = (await files.read(`${folder}/${FormatName}`)).toString().trimEnd()
  if (format === Format) return 'current'
  // One that is not even a number was cut short, or damaged: the state says the rest.
  if (!/^\d+$/.test(format)) return 'old'
  throw unopened(folder, `it has format ${format}, and this version reads format ${Format} only`)
}

/** Once the state is there. This does not wait for the disk: should it be lost, the state says as much. */
export async function writeFormat(files: Files, folder: string): Promise<void> {
  const file = await files.open(`${folder}/${FormatName}`, 'create')
  try {
    await file.write(Buffer.from(`${Format}\n`), 0)
  } finally {
    await file.close()
  }
  for (const name of await files.list(folder)) if (LeftBehind.test(name)) await files.remove(`${folder}/${name}`)
}
