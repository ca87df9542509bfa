import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createClient, getCondition, seededRandom, systemClock } from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'
import { afterEach, expect, test } from 'vitest'
import { parse } from 'yaml'
import { Lifetime } from './lifetime.ts'

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'capstan-lifetime-'))
const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** Starts a program and returns it when it has printed a line with the text. */
async function start(text: string, ...argv: string[]): Promise<ChildProcess> {
  const child = spawn(process.execPath, argv, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (line.includes(text)) return child
  }
  throw new Error(`the program ended without a line with "${text}": ${lines.join('\n')}`)
}

test('the program of the guide reconciles the Lifetime of the guide on a management cluster, until SIGINT', async () => {
  const guide = readFileSync(pathOf('../../docs/guides/write-a-controller.md'), 'utf8')
  const [, manifest] = /<<'YAML'\n([^]*?)^YAML$/m.exec(guide)!
  const kubeconfig = join(folder, 'kubeconfig')
  await start(
    'ready at',
    pathOf('../../packages/cli/bin/capstan.js'),
    'up',
    '--memory',
    '--port',
    '0',
    '--kubeconfig',
    kubeconfig,
  )
  const program = await start('lifetime controller started', pathOf('main.ts'), kubeconfig)

  const transport = httpsTransport(await loadKubeconfig(kubeconfig), { clock: systemClock, random: seededRandom(1) })
  const client = createClient(transport)
  const done = new AbortController()
  const changes = await client.watch(Lifetime, { signal: done.signal })
  await client.create(Lifetime, parse(manifest!) as Lifetime)
  for await (const { object } of changes) if (getCondition(object as Lifetime, 'Expired')?.reason === 'Alive') break
  done.abort()
  transport.close()

  program.kill('SIGINT')
  expect(await once(program, 'exit')).toEqual([0, null])
})
