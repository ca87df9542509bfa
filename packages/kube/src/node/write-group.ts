/** Writes files that belong together, such as a certificate and its key. */
import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Writes files that only their owner can read, all or none as far as the operating system allows: all texts are durable under temporary
 * names before the first file is renamed. After a failed rename, or a crash between two renames, some files are new and others old. A program that reads the
 * files must check that they belong together, and otherwise write all of them again.
 */
export async function writeGroup(texts: { readonly [path: string]: string }): Promise<void> {
  const paths = Object.keys(texts)
  for (const path of paths) await writeDurably(temporary(path), texts[path]!)
  for (const path of paths) await rename(temporary(path), path)
  for (const folder of new Set(paths.map((path) => dirname(path)))) await syncFolder(folder)
}

const temporary = (path: string): string => `${path}.new`

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    // An existing file may have other permissions.
    await file.chmod(0o600)
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Makes the renames in a folder durable. Windows cannot sync folders; there, a rename counts as durable without this step. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r').catch((err: NodeJS.ErrnoException) => {
    if (err.code === 'EISDIR' || err.code === 'EPERM') return undefined
    throw err
  })
  try {
    await folder?.sync()
  } finally {
    await folder?.close()
  }
}
