import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeFolder } from '@capstan/kube/node'
import type { ProjectFile } from './extension-project.ts'

/** Writes all files; writes nothing if any of them exists. @throws Error naming the existing files */
export async function writeProject(folder: string, files: readonly ProjectFile[]): Promise<void> {
  const existing = files.map(({ path }) => join(folder, path)).filter((path) => existsSync(path))
  if (existing.length > 0) throw new Error(`Cannot write over ${existing.join(', ')}: nothing has been written`)
  for (const { path, text, secret } of files) {
    const file = join(folder, path)
    await makeFolder(dirname(file))
    // `wx` fails if another process has created the file in the meantime.
    await writeFile(file, text, { flag: 'wx', ...(secret ? { mode: 0o600 } : {}) })
  }
}
