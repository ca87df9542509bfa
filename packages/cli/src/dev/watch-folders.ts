/** Detects saved files, both those that an editor writes in place and those that it replaces by renaming. */
import { type FSWatcher, watch } from 'node:fs'
import { dirname, join } from 'node:path'

export interface FolderWatch {
  /** Also watches the folders of these files. */
  add(files: readonly string[]): void
  close(): void
}

/** Watches whole folders, because editors replace files, and missing files may be created. */
export function watchFolders(changed: (file: string) => void): FolderWatch {
  const watchers = new Map<string, FSWatcher>()
  /** Folders of watched files that do not exist. */
  const missing = new Set<string>()

  const watchOne = (folder: string): void => {
    if (watchers.has(folder)) return
    let watcher: FSWatcher
    try {
      watcher = watch(folder, (_event, name) => {
        if (name === null) return
        const file = join(folder, name)
        if (missing.delete(file) || isExtensionFile(name)) changed(file)
      })
    } catch {
      // The nearest existing parent folder is watched instead, to notice the creation.
      missing.add(folder)
      if (dirname(folder) !== folder) watchOne(dirname(folder))
      return
    }
    watchers.set(folder, watcher)
    // The folder was removed, and may exist again.
    watcher.on('error', () => {
      watcher.close()
      watchers.delete(folder)
    })
  }
  return {
    add(files) {
      for (const folder of new Set(files.map((file) => dirname(file)))) watchOne(folder)
    },
    close() {
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
    },
  }
}

/** Whether a file is source or data, not a test or a temporary file of an editor. */
export const isExtensionFile = (name: string): boolean =>
  /\.([cm]?[jt]s|json|ya?ml)$/.test(name) && !name.startsWith('.') && !/\.(test|spec)\.[cm]?[jt]s$/.test(name)
