/** Detects saved files, whether an editor writes them in place or replaces them by renaming. */
import { type FSWatcher, watch } from 'node:fs'
import { basename, dirname, join } from 'node:path'

export interface FolderWatch {
  /** Adds the folders of these files to the watched folders. */
  add(files: readonly string[]): void
  close(): void
}

/**
 * Watches folders instead of files, because editors replace files, and missing files may be created. Calls `changed` with the path of
 * each changed file that `isExtensionFile` accepts, and of each missing or removed folder that is created.
 */
export function watchFolders(changed: (file: string) => void): FolderWatch {
  const watchers = new Map<string, FSWatcher>()
  /** Folders to watch that do not exist. */
  const missing = new Set<string>()

  const watchFolder = (folder: string): void => {
    if (watchers.has(folder)) return
    let watcher: FSWatcher
    try {
      watcher = watch(folder, (event, name) => {
        // When a folder is removed or renamed, the event has the name of the folder itself.
        if (event === 'rename' && name === basename(folder)) return watchAgain(folder)
        if (name === null) return
        const file = join(folder, name)
        if (missing.delete(file) || isExtensionFile(name)) changed(file)
      })
    } catch {
      // The nearest existing parent folder is watched instead, to detect when this folder is created.
      missing.add(folder)
      if (dirname(folder) !== folder) watchFolder(dirname(folder))
      return
    }
    watchers.set(folder, watcher)
    // After an error (on Windows, the removal of the folder is one), `add` can watch the folder again.
    watcher.on('error', () => {
      watcher.close()
      watchers.delete(folder)
    })
  }
  /** Watches a folder that was removed and perhaps created again. */
  const watchAgain = (folder: string): void => {
    watchers.get(folder)?.close()
    watchers.delete(folder)
    watchFolder(folder)
    if (watchers.has(folder)) changed(folder)
  }
  return {
    add(files) {
      for (const folder of new Set(files.map((file) => dirname(file)))) watchFolder(folder)
    },
    close() {
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
    },
  }
}

/**
 * Whether a file can be part of a Runtime Extension: JavaScript, TypeScript, JSON or YAML, but no test, and no file whose name starts with a
 * dot, such as a temporary file of an editor.
 */
export const isExtensionFile = (name: string): boolean =>
  /\.([cm]?[jt]s|json|ya?ml)$/.test(name) && !name.startsWith('.') && !/\.(test|spec)\.[cm]?[jt]s$/.test(name)
