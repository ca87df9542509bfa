import { readFileSync } from 'node:fs'
import { silent } from '@capstan/kube'
import { expect, it } from 'vitest'
import { watchFiles } from './watch-files.ts'

it.runIf(process.platform === 'linux')('reads a file to its end if its size is unknown, as in /proc', async () => {
  let used: readonly string[] = []
  const watched = await watchFiles(['/proc/version'], (contents) => (used = contents), silent)
  watched.close()
  expect(used).toEqual([readFileSync('/proc/version', 'utf8')])
})
