import { openDurable } from '@capstan/apiserver'
import { systemClock } from '@capstan/kube'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { dataFolder } from './data-folder.ts'
import { openFolder, recordOwner } from './folder-owner.ts'

describe('the error for a data folder in use', () => {
  const folder = dataFolder({ cwd: mkdtempSync(join(tmpdir(), 'capstan-folder-owner-')) })
  let stores: Awaited<ReturnType<typeof openDurable>>
  beforeEach(async () => {
    stores = await openDurable(folder.database, { clock: systemClock })
    return async () => {
      await stores.close()
      rmSync(folder.path, { recursive: true })
    }
  })

  test('names the recorded process and its URL', async () => {
    await recordOwner(folder, { pid: process.pid, url: 'https://127.0.0.1:6443' })
    await expect(openFolder(folder, systemClock)).rejects.toThrow(
      `Cannot open data folder ${folder.path}: process ${process.pid} uses it and serves https://127.0.0.1:6443`,
    )
  })

  test('does not name a recorded process that has ended', async () => {
    const { pid } = spawnSync(process.execPath, ['--version'])
    await recordOwner(folder, { pid, url: 'https://127.0.0.1:6443' })
    await expect(openFolder(folder, systemClock)).rejects.toThrow(
      /^Cannot open data folder \S+: it is in use by another process$/,
    )
  })
})
