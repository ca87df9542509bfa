import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeFolder } from '@capstan/kube/node'
import type { ProjectFile } from './extension-project.ts'

/** Writes all files, or none when one of them exists. @throws Error naming the existing files */
export async function writeProject(folder: string, files: readonly ProjectFile[]): Promise<void> {
  const existing = files.map(({ path }) => join(folder, path)).filter((path) => existsSync(path))
  if (existing.length > 0) throw new Error(`Cannot write over ${existing.join(', ')}: nothing has been written`)
  for (const { path, text, secret } of files) {
    const file = join(folder, path)
    await makeFolder(dirname(file))
    // Another process may have created it meanwhile.
    await writeFile(file, text, { flag: 'wx', ...(secret ? { mode: 0o600 } : {}) })
  }
}
