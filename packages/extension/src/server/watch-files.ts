/** Watches files that are replaced while they are in use, such as certificates. */
import { type FSWatcher, readFileSync, watch } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { type Logger, messageOf } from '@capstan/kube'

export interface WatchedFiles {
  close(): void
}

/**
 * Reads files together, and again after each change in their folders: a file is written or renamed, or a link is swapped, as Kubernetes
 * does with the contents of a Secret. There is no polling. `use` gets the contents in the order of the files. When a file cannot be read or
 * `use` throws, the error is logged and the earlier contents stay in use.
 *
 * @throws the error of the first reading
 */
export function watchFiles(files: readonly string[], use: (contents: readonly string[]) => void, log: Logger): WatchedFiles {
  const paths = files.map((file) => resolve(file))
  const read = () => paths.map((path) => readFileSync(path, 'utf8'))
  let used = read()
  use(used)
  /** The last rejected contents with their error, which is logged only once. */
  let rejected = ''

  const readAgain = (): void => {
    let contents: string[] = []
    try {
      contents = read()
      if (contents.every((content, index) => content === used[index])) return
      use(contents)
      used = contents
      rejected = ''
      log.info('Reloaded changed files', { files: paths })
    } catch (err) {
      const rejection = `${messageOf(err)} ${contents.join()}`
      if (rejection === rejected) return
      rejected = rejection
      log.warn('Cannot use changed files: the earlier ones stay in use', { files: paths, reason: messageOf(err) })
    }
  }
  const watchers = [...new Set(paths.map((path) => dirname(path)))].map((folder) => watchFolder(folder, readAgain, log))
  // A change between reading and watching triggers no event.
  readAgain()
  return { close: () => watchers.forEach((close) => close()) }
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
      // The folder does not exist now. An event of its parent folder reports when it exists again.
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
