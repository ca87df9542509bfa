import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ProjectFile } from './extension-project.ts'

/** Writes all files, or none when one of them is there already. @throws Error naming those */
export async function writeProject(folder: string, files: readonly ProjectFile[]): Promise<void> {
  const there = files.map(({ path }) => join(folder, path)).filter((path) => existsSync(path))
  if (there.length > 0) throw new Error(`Cannot write over ${there.join(', ')}: nothing has been written`)
  for (const { path, text, secret } of files) {
    const file = join(folder, path)
    await mkdir(dirname(file), { recursive: true })
    // Somebody may have been faster.
    await writeFile(file, text, { flag: 'wx', ...(secret ? { mode: 0o600 } : {}) })
  }
}
