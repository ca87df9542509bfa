import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '@capstan/kube'
import { expect, it } from 'vitest'
import { watchFiles } from './watch-files.ts'

it.runIf(process.platform === 'linux')('reads a file to its end even if `stat` reports the size 0, as in /proc', async () => {
  let used: readonly string[] = []
  const watched = await watchFiles(['/proc/version'], (contents) => (used = contents), silent)
  watched.close()
  expect(used).toEqual([readFileSync('/proc/version', 'utf8')])
})

it('throws the error of the unreadable file that is first in the list, not the error that occurs first', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'watch-files-'))
  try {
    const long = join(folder, 'long')
    // Takes longer to read than the other file, which does not exist.
    writeFileSync(long, Buffer.alloc(5 << 20))
    await expect(watchFiles([long, join(folder, 'missing')], () => {}, silent)).rejects.toThrow(/long is longer than \d+ bytes/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
