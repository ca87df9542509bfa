/** A disk that a test can fill: a small file system where the machine allows mounts, otherwise a limit on file size. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CannotRun } from '../shared/suite.ts'

export interface SmallDisk {
  /** Short description for the log. */
  readonly kind: string
  /** Folder on the disk. Only commands that are started with `prefix` see the disk there. */
  readonly folder: string
  readonly prefix: readonly string[]
  /** Pattern of the error message of a write to the full disk. */
  readonly full: RegExp
  /** Makes writes of the process to the disk fail, until `free` is called. */
  fill(pid: number): void
  free(pid: number): void
  close(): Promise<void>
}

/**
 * Creates a small disk at `folder`. Where the machine allows no mounts, `fill` limits the size of files instead.
 *
 * @throws CannotRun if the machine allows neither
 */
export async function smallDisk(folder: string, megabytes = 8): Promise<SmallDisk> {
  mkdirSync(folder, { recursive: true })
  const disk = (await ownFileSystem(folder, megabytes)) ?? limitedFiles(folder)
  if (!disk)
    throw new CannotRun('this machine allows neither a file system in memory (unshare, mount) nor a limit on file size (prlimit)')
  return disk
}

/**
 * Mounts a file system in memory in a new mount namespace. The process that created the namespace keeps it until `close` ends that process,
 * but for at most an hour. Returns `undefined` if the machine does not allow this.
 */
async function ownFileSystem(folder: string, megabytes: number): Promise<SmallDisk | undefined> {
  for (const [unshare, nsenter] of [
    [['--mount'], ['--mount']],
    [
      ['--user', '--map-root-user', '--mount'],
      ['--user', '--preserve-credentials', '--mount'],
    ],
  ] as const) {
    const holder = spawn(
      'unshare',
      [
        ...unshare,
        'sh',
        '-c',
        'mount -t tmpfs -o "size=$1m" tmpfs "$0" && echo mounted && exec sleep 3600',
        folder,
        String(megabytes),
      ],
      { stdio: ['ignore', 'pipe', 'ignore'] },
    )
    const isMounted = await new Promise<boolean>((resolve) => {
      holder.stdout.once('data', () => resolve(true))
      holder.once('error', () => resolve(false))
      holder.once('exit', () => resolve(false))
    })
    if (!isMounted) continue
    const filler = join(`/proc/${holder.pid}/root`, folder, 'filler')
    return {
      kind: `a file system of ${megabytes} MB`,
      folder,
      prefix: ['nsenter', '--target', String(holder.pid), ...nsenter, '--'],
      full: /ENOSPC: no space left on device/,
      fill() {
        for (const size of [64 * 1024, 512, 1]) {
          const bytes = Buffer.alloc(size)
          try {
            for (;;) writeFileSync(filler, bytes, { flag: 'a' })
          } catch (err) {
            if ((err as NodeJS.ErrnoException).code !== 'ENOSPC') throw err
          }
        }
      },
      free: () => rmSync(filler),
      async close() {
        holder.kill('SIGKILL')
        await new Promise((resolve) => holder.once('exit', resolve))
      },
    }
  }
  return undefined
}

/** Returns a disk whose `fill` limits the size of the process's files with prlimit, or `undefined` if the machine does not allow this. */
function limitedFiles(folder: string): SmallDisk | undefined {
  const limit = (pid: number, size: string) => spawnSync('prlimit', ['--pid', String(pid), `--fsize=${size}:unlimited`]).status
  if (limit(process.pid, 'unlimited') !== 0) return undefined
  return {
    kind: 'a limit on the size of files',
    folder,
    prefix: [],
    full: /EFBIG: file too large/,
    fill: (pid) => void limit(pid, '1'),
    free: (pid) => void limit(pid, 'unlimited'),
    close: () => Promise.resolve(),
  }
}
