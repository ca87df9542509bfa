/** Watches files that are replaced while they are in use, such as certificates. */
import { constants, type FSWatcher, watch } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { type Logger, messageOf } from '@capstan/kube'

export interface WatchedFiles {
  close(): void
}

/**
 * Reads files together, and again after each change in their folders: a file is written or renamed, or a link is swapped, as Kubernetes
 * does with the contents of a Secret. There is no polling. Calls `use` with the first contents, and then only with contents that differ from
 * those in use; the contents are in the order of the files. When a changed file cannot be read or `use` throws, the error is logged and the
 * earlier contents stay in use. A file that is not a regular file, such as a pipe, or that is longer than 4 MiB, cannot be read.
 *
 * @throws the error of the first reading, of the first call of `use`, or of watching the parent of a folder
 */
export async function watchFiles(
  files: readonly string[],
  use: (contents: readonly string[]) => void,
  log: Logger,
): Promise<WatchedFiles> {
  const paths = files.map((file) => resolve(file))
  const read = async (): Promise<string[]> => {
    const results = await Promise.allSettled(paths.map(readText))
    // If several files fail, the error of the first one is thrown, so that repeated readings throw the same error.
    return results.map((result) => {
      if (result.status === 'rejected') throw result.reason
      return result.value
    })
  }
  let used = await read()
  use(used)
  /** The last rejected contents with their error, which is logged only once. */
  let rejected = ''

  let isClosed = false
  let isReading = false
  /** Whether an event has reported a change since the last reading began. */
  let hasChanged = false
  const readAgain = async (): Promise<void> => {
    let contents: string[] = []
    try {
      contents = await read()
      if (isClosed || hasChanged) return
      if (contents.every((content, index) => content === used[index])) return
      use(contents)
      used = contents
      rejected = ''
      log.info('Reloaded changed files', { files: paths })
    } catch (err) {
      if (isClosed || hasChanged) return
      const rejection = `${messageOf(err)} ${contents.join()}`
      if (rejection === rejected) return
      rejected = rejection
      log.warn('Cannot use changed files: the earlier ones stay in use', { files: paths, reason: messageOf(err) })
    }
  }
  const changed = async (): Promise<void> => {
    hasChanged = true
    if (isReading) return
    isReading = true
    while (hasChanged && !isClosed) {
      hasChanged = false
      await readAgain()
    }
    isReading = false
  }
  const watchers = [...new Set(paths.map((path) => dirname(path)))].map((folder) =>
    watchFolder(folder, () => void changed(), log),
  )
  // A change between reading and watching triggers no event.
  await changed()
  return {
    close() {
      isClosed = true
      watchers.forEach((close) => close())
    },
  }
}

/** Maximum size of a file. Bundles of certificate authorities have up to 300 kB. */
const MaxBytes = 4 << 20

const ChunkBytes = 64 << 10

/** Reads a file without blocking the thread. @throws Error for a file that does not exist, is too long or is not a regular file */
async function readText(path: string): Promise<string> {
  // Without O_NONBLOCK, opening a pipe waits for a writer.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    if (!(await file.stat()).isFile()) throw new Error(`${path} is not a regular file`)
    // The size from `stat` is not used: a file may grow, and in /proc and some other file systems it is 0.
    const chunks: Buffer[] = []
    for (let length = 0; ; ) {
      const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(ChunkBytes) })
      if (bytesRead === 0) return Buffer.concat(chunks).toString()
      chunks.push(buffer.subarray(0, bytesRead))
      length += bytesRead
      if (length > MaxBytes) throw new Error(`${path} is longer than ${MaxBytes} bytes`)
    }
  } finally {
    await file.close()
  }
}

/** Watches a folder, also after the folder itself is replaced. */
function watchFolder(folder: string, changed: () => void, log: Logger): () => void {
  let inside: FSWatcher | undefined
  const begin = () => {
    inside?.close()
    inside = undefined
    try {
      inside = watch(folder, changed)
      inside.on('error', (err) => log.warn('Cannot watch a folder', { folder, reason: messageOf(err) }))
    } catch {
      // Probably the folder does not exist now. An event of its parent folder then reports when it exists again.
    }
  }
  begin()
  const around = watch(dirname(folder), (_event, name) => {
    if (name !== null && name !== basename(folder)) return
    begin()
    changed()
  })
  around.on('error', (err) => log.warn('Cannot watch a folder', { folder: dirname(folder), reason: messageOf(err) }))
  return () => {
    inside?.close()
    around.close()
  }
}
