/** Measures the time from saving a file to the first response of the new extension, with the server of `capstan dev` in this process. */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BeforeClusterCreate } from '@capstan/api'
import { callServer, fixture, httpsHookTransport } from '@capstan/extension'
import { sleep, systemClock } from '@capstan/kube'
import { reloadingExtension } from '../packages/cli/src/dev/reloading-extension.ts'
import { type BenchOptions, type Figure, median, now } from './figure.ts'

const source = (message: string): string => `
import { BeforeClusterCreate } from '@capstan/api'
import { defineExtension, on, proceedNow } from '@capstan/extension'

export const extension = defineExtension({
  name: 'reloaded',
  handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => proceedNow('${message}'))],
})
`

export async function* devReloadBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-bench-dev-'))
  symlinkSync(fileURLToPath(new URL('../node_modules', import.meta.url)), join(folder, 'node_modules'))
  const module = join(folder, 'extension.ts')
  writeFileSync(module, source('first'))
  let loaded = Promise.withResolvers<void>()
  let caBundle = ''
  const extension = await reloadingExtension({
    module,
    port: 0,
    clock: systemClock,
    async trust(bundle) {
      caBundle = Buffer.from(bundle).toString('base64')
    },
    report() {},
    loaded: () => loaded.resolve(),
  })
  const transport = httpsHookTransport()
  const answer = async () => {
    const server = { url: extension.url, caBundle }
    const call = {
      server,
      handler: 'gate',
      request: fixture(BeforeClusterCreate),
      timeoutSeconds: 10,
      transport,
      clock: systemClock,
    }
    return ((await callServer(BeforeClusterCreate, call)).response as { message?: string }).message
  }
  try {
    extension.start()
    await loaded.promise
    const times: number[] = []
    for (let round = 0; round < (short ? 3 : 20); round++) {
      // Simulates a pause between two saves, in which `capstan dev` starts the next process in advance.
      await sleep(systemClock, 1000)
      loaded = Promise.withResolvers()
      const saved = now()
      writeFileSync(module, source(String(round)))
      await loaded.promise
      if ((await answer()) !== String(round)) throw new Error('The old extension responded after the new one was loaded')
      times.push(now() - saved)
    }
    yield { name: 'saved file to the first response of the new extension', value: median(times), unit: 'ms' }
    yield { name: '… the slowest', value: Math.max(...times), unit: 'ms' }
  } finally {
    transport.close()
    await extension.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
