/** Runs the TypeScript programs and the `capstan` commands of the section Uses in the README of the API server. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ConfigMap, createClient, seededRandom, systemClock } from '@capstan/kube'
import { httpsTransport, loadKubeconfig } from '@capstan/kube/node'
import { afterAll, describe, expect, test } from 'vitest'
import { runToEnd, start } from './test-io.ts'

const apiserver = fileURLToPath(new URL('../../apiserver', import.meta.url))
const readme = readFileSync(join(apiserver, 'README.md'), 'utf8')
const [, uses = ''] = /^## Uses$([^]*?)^## /m.exec(readme) ?? []
const blocks = [...uses.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, language, text]) => ({ language, text: text! }))

const folder = mkdtempSync(join(tmpdir(), 'capstan-readme-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('there are four examples, the first three with at most 15 lines each', () => {
  expect(blocks.map(({ language }) => language)).toEqual(['ts', 'sh', 'sh', 'ts'])
  for (const { text } of blocks.slice(0, 3)) expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(15)
})

describe('programs run unchanged, except for the data folder', () => {
  test.each([
    { name: 'the test in process', block: blocks[0], prints: /pass 1$/m },
    {
      name: 'the server that stores data in a folder and listens on a port',
      block: blocks[3],
      prints: /^https:\/\/127\.0\.0\.1:\d+$/m,
    },
  ])('$name', async ({ block, prints }) => {
    // Folders named in the README are created in a temporary folder.
    const code = block!.text.replaceAll("'state'", JSON.stringify(join(folder, 'own')))
    const program = [process.execPath, ['--input-type=module-typescript', '-e', code], { cwd: apiserver }] as const
    const { stdout, stderr } = await promisify(execFile)(...program)
    expect(stderr).toBe('')
    expect(stdout).toMatch(prints)
  })
})

/** Arguments of the line that runs `capstan NAME`, with folders and ports of this test. */
function argvOf(name: string): string[] {
  const line = blocks.flatMap(({ text }) => text.split('\n')).find((candidate) => candidate.startsWith(`capstan ${name} `))
  const words = line?.replace(/ &$/, '').split(' ').slice(1) ?? []
  return words.map((word) => (/^(state|bin)\b/.test(word) ? join(folder, word) : word === '7443' ? '0' : word))
}

test('the server accepts clients with the kubeconfig', async () => {
  const server = start(argvOf('apiserver'))
  await server.line(/ready/)
  const access = await loadKubeconfig(join(folder, 'state/kubeconfig'))
  const transport = httpsTransport(access, { clock: systemClock, random: seededRandom(1), userAgent: 'test' })
  await createClient(transport).create(ConfigMap, { metadata: { name: 'a', namespace: 'default' }, data: { k: 'v' } })
  transport.close()
  expect(await server.interrupt()).toBe(0)
})

test('envtest prints the folder that the README sets as KUBEBUILDER_ASSETS', async () => {
  const { code, out } = await runToEnd(argvOf('envtest'))
  expect({ code, out }).toEqual({ code: 0, out: join(folder, 'bin/envtest') })
  expect(blocks[2]!.text).toContain('KUBEBUILDER_ASSETS=$PWD/bin/envtest ')
})
