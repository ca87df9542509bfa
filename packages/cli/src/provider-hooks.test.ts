import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { loadProviderHooks } from './provider-hooks.ts'

const example = fileURLToPath(new URL('../../../examples/provider-hook/hooks.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'capstan-provider-hooks-'))
afterAll(() => rmSync(folder, { recursive: true }))

const hooksIn = async (...providerHooks: string[]) =>
  (await loadProviderHooks({ providerHooks })).map(({ group, version, name }) => `${group}/${version} ${name}`)

test('loads each hook once, also if a module exports it alone and in a list; loads none without a module', async () => {
  const hooks = await hooksIn(example)
  expect(hooks.sort()).toEqual([
    'hooks.provider.example.com/v1 BeforeHostProvision',
    'hooks.provider.example.com/v1beta1 BeforeHostProvision',
  ])
  expect(await hooksIn()).toEqual([])
})

test.each([
  ['does not exist', undefined, 'there is no such file'],
  ['exports no hooks', 'export const answer = 42\nexport const list = [{}]', 'it exports no hook'],
  [
    'exports a hook of core',
    `export const mine = { group: 'hooks.runtime.cluster.x-k8s.io', version: 'v1alpha1', name: 'BeforeClusterCreate', request: {}, response: {} }`,
    'The hook hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=BeforeClusterCreate is declared twice',
  ],
])('a module that %s is rejected', async (fault, source, problem) => {
  const path = join(folder, `${fault.replaceAll(' ', '-')}.mjs`)
  if (source !== undefined) writeFileSync(path, source)
  await expect(loadProviderHooks({ providerHooks: [path] })).rejects.toThrow(`--provider-hooks ${path}: ${problem}`)
})

test('rejects a module that is given twice', () =>
  expect(loadProviderHooks({ providerHooks: [example, example] })).rejects.toThrow(/Hook=BeforeHostProvision is declared twice/))
