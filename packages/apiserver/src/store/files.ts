/** The file system as an argument: what the durable store asks of it, so that tests can let any step fail. */
import { writeSync } from 'node:fs'
import { open, readdir, readFile, rename, rm, mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface Files {
  /** A file to write to. `create` begins it anew; `existing` is an error when there is none. Only the owner can read what is created. */
  open(path: string, mode: 'create' | 'existing'): Promise<OpenFile>
  /** @throws with code ENOENT when there is none */
  read(path: string): Promise<Buffer>
  /** Names in a folder; none when there is no folder. */
  list(folder: string): Promise<string[]>
  rename(from: string, to: string): Promise<void>
  /** A file, or a folder with all that is in it; nothing when it is absent. */
  remove(path: string): Promise<void>
  makeFolder(path: string): Promise<void>
  /** What has been created, renamed or removed in a folder survives a loss of power. */
  syncFolder(path: string): Promise<void>
}

export interface OpenFile {
  /** All of `bytes`, or an error. */
  write(bytes: Uint8Array, position: number): Promise<void>
  truncate(size: number): Promise<void>
  /** What has been written survives a loss of power. After a failure nobody knows: the file must not be written to any more. */
  sync(): Promise<void>
  close(): Promise<void>
}

/**
 * So few bytes are copied into the operating system's memory at once. With data and mark handed to other threads as the sync is, a
 * commit takes 340 µs; without, 130. What waits for the disk is the sync.
 */
const AtOnce = 64 * 1024

export const nodeFiles: Files = {
  async open(path, mode) {
    const handle = await open(path, mode === 'create' ? 'w' : 'r+', 0o600)
    return {
      async write(bytes, position) {
        const isSmall = bytes.length <= AtOnce
        for (let done = 0; done < bytes.length; ) {
          const [length, at] = [bytes.length - done, position + done]
          done += isSmall
            ? writeSync(handle.fd, bytes, done, length, at)
            : (await handle.write(bytes, done, length, at)).bytesWritten
        }
      },
      truncate: (size) => handle.truncate(size),
      sync: () => handle.datasync(),
      close: () => handle.close(),
    }
  },
  read: (path) => readFile(path),
  async list(folder) {
    try {
      return await readdir(folder)
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw err
    }
  },
  rename,
  remove: (path) => rm(path, { recursive: true, force: true }),
  async makeFolder(path) {
    await mkdir(path, { recursive: true, mode: 0o700 })
  },
  async syncFolder(path) {
    // Windows has no such thing: there a rename is durable when the file is.
    const handle = await open(path, 'r').catch((err: NodeJS.ErrnoException) => {
      if (err.code === 'EISDIR' || err.code === 'EPERM') return undefined
      throw err
    })
    if (!handle) return
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  },
}

/** Writes a file whole or not at all, durable once it resolves. */
export async function writeWhole(files: Files, path: string, write: (file: OpenFile) => Promise<void>): Promise<void> {
  const temporary = `${path}.new`
  const file = await files.open(temporary, 'create')
  try {
    await write(file)
    await file.sync()
  } catch (err) {
    await file.close().catch(() => {})
    await files.remove(temporary).catch(() => {})
    throw err
  }
  await file.close()
  await files.rename(temporary, path)
  await files.syncFolder(dirname(path))
}
