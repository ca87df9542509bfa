import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { runToEnd, start } from '../test-io.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'capstan-conform-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (text: string): string => {
  const file = join(folder, 'file.yaml')
  writeFileSync(file, text)
  return file
}

const local = ['--infrastructure', 'LocalCluster']

test.each([
  ['arguments without a kind', [], 'no provider to test'],
  [
    'a kind of an InfraMachine without the kind of its InfraCluster',
    ['--ipam', 'DevPool', '--machine', 'LocalMachine'],
    'InfraMachine is tested with its InfraCluster',
  ],
  ['an unknown rule', [...local, '--only', 'infra-cluster,no-such-rule'], 'there is no rule "no-such-rule"'],
  ['an unknown rule to skip', [...local, '--skip', 'infra-clu'], 'there is no rule "infra-clu"'],
  [
    'a report of an unknown format',
    [...local, '--report', 'a.pdf'],
    '--report a.pdf: expected a name that ends with .txt, .json, .xml or .html',
  ],
  ['an invalid duration', [...local, '--timeout', '3'], 'expected a duration such as 90s'],
  ['0 parallel scenarios', [...local, '--parallel', '0'], 'expected a whole number from 1 to 32'],
  ['a file of examples that does not exist', [...local, '--examples', '/nowhere.yaml'], '--examples /nowhere.yaml: ENOENT'],
])('rejects %s', async (_, args, message) => {
  const { code, err } = await runToEnd(['conform', ...args])
  expect(err).toContain(message)
  expect(code).toBe(2)
})

test('rejects an example without apiVersion and kind, and names its document', async () => {
  const examples = write('apiVersion: a/v1\nkind: A\n---\nspec: {}\n')
  const { code, err } = await runToEnd(['conform', '--infrastructure', 'LocalCluster', '--examples', examples])
  expect(err).toContain(`--examples ${examples}: document 2: expected an object with apiVersion and kind`)
  expect(code).toBe(2)
})

test('reports an interrupt, and exits with 130', async () => {
  const unresponsive = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void unresponsive.close())
  await once(unresponsive, 'listening')
  const server = `https://127.0.0.1:${(unresponsive.address() as AddressInfo).port}`
  const kubeconfig = write(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'a', cluster: { server } }],
      contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
      users: [{ name: 'a', user: {} }],
      'current-context': 'a',
    }),
  )
  const command = start(['conform', ...local, '--kubeconfig', kubeconfig])
  const [socket] = (await once(unresponsive, 'connection')) as [Socket]
  expect(await command.interrupt()).toBe(130)
  expect(command.err).toEqual(['capstan: interrupted by SIGINT'])
  socket.destroy()
})
