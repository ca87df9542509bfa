/** Tapes (recordings of hook calls) on disk. Only the owner of the file can read a tape. */
import { open, readFile } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { messageOf } from '@capstan/kube'
import type { TapeFile } from './recorder.ts'
import { parseHeader, parseTape, type Tape, TapeError, TapeFormat } from './tape.ts'

/**
 * Opens a tape for writing. An existing tape is continued after its last complete line. A file that is empty, or has only an incomplete first
 * line of a tape, becomes a new tape. Any other existing file is rejected and not changed.
 *
 * @throws Error that names the file
 */
export async function openTape(path: string): Promise<TapeFile> {
  const file = await open(path, 'a+', 0o600).catch((err: unknown) => {
    throw withPath(path, err)
  })
  try {
    const bytes = await completeBytes(file)
    if (bytes < (await file.stat()).size) await file.truncate(bytes)
    await file.chmod(0o600)
    return { bytes, append: (text) => file.appendFile(text), close: () => file.close() }
  } catch (err) {
    await file.close()
    throw withPath(path, err)
  }
}

/** Reads a tape. @throws Error that names the file: a TapeError, or the error of Node if this error names the file */
export async function readTape(path: string): Promise<Tape> {
  try {
    return parseTape(await readFile(path, 'utf8'))
  } catch (err) {
    throw withPath(path, err)
  }
}

/** Adds the path to an error that does not name it, such as Node's error for a folder. */
const withPath = (path: string, err: unknown): Error =>
  (err as NodeJS.ErrnoException).path === undefined ? new TapeError(`${path}: ${messageOf(err)}`, { cause: err }) : (err as Error)

/**
 * Returns the length in bytes of a tape's complete lines: 0 if the file is empty, or has only an incomplete first line of a tape.
 *
 * @throws TapeError if the first line of the file is not that of a tape, or has an unsupported version
 */
async function completeBytes(file: FileHandle): Promise<number> {
  const { size } = await file.stat()
  if (size === 0) return 0
  const { buffer: head, bytesRead } = await file.read(Buffer.alloc(4096), 0, 4096, 0)
  const first = head.subarray(0, bytesRead).indexOf('\n')
  const beginning = `{"tape":"${TapeFormat}"`
  // An incomplete header: for example, the process was killed while it wrote the first line.
  if (first < 0 && head.toString('utf8', 0, bytesRead).startsWith(beginning.slice(0, bytesRead))) return 0
  if (first < 0) throw new TapeError('not a tape: the first line is missing')
  parseHeader(head.subarray(0, first).toString())
  return lastLineEnd(file, size)
}

/** Returns the position after the last line break; 0 without a line break. Reads backwards from the end, because a tape may be long. */
async function lastLineEnd(file: FileHandle, size: number): Promise<number> {
  const step = 64 * 1024
  for (let end = size; end > 0; end -= step) {
    const start = Math.max(0, end - step)
    const { buffer } = await file.read(Buffer.alloc(end - start), 0, end - start, start)
    const lineEnd = buffer.lastIndexOf('\n')
    if (lineEnd >= 0) return start + lineEnd + 1
  }
  return 0
}
