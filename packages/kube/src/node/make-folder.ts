import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Creates a folder and the folders above it; does nothing when the folder exists.
 *
 * `mkdir` with `recursive` is not used: in a file system that fails every creation with ENOENT, such as /proc, Node 24 retries without
 * end.
 *
 * @throws Error with the code of the operating system, for the folder that could not be created
 */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  try {
    await mkdir(path, { mode })
  } catch (err) {
    const { code } = err as NodeJS.ErrnoException
    if (code === 'EEXIST') return mustBeFolder(path, err)
    const parent = dirname(path)
    if (code !== 'ENOENT' || parent === path) throw err
    await makeFolder(parent, mode)
    await mkdir(path, { mode }).catch((retryError: NodeJS.ErrnoException) => {
      if (retryError.code !== 'EEXIST') throw retryError
    })
  }
}

async function mustBeFolder(path: string, err: unknown): Promise<void> {
  if (!(await stat(path)).isDirectory()) throw err
}
