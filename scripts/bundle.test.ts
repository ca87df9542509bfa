import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bundle } from './bundle.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
/** Folder of the test's installation. It is in the checkout, where the bundle finds packages that it does not contain. */
const folder = `${root}.capstan/bundle-test`
const sourcesFile = `${folder}/dist/sources.json`

/**
 * Creates an installation with a bundle of the command. The sources in the installation only print a line, so that tests detect whether the
 * bundle or the sources run.
 */
beforeAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(`${folder}/src/envtest`, { recursive: true })
  cpSync(`${root}packages/cli/bin`, `${folder}/bin`, { recursive: true })
  writeFileSync(`${folder}/package.json`, '{"type":"module"}')
  for (const source of ['main', 'envtest/main'])
    writeFileSync(`${folder}/src/${source}.ts`, "console.log('from its sources' as string)")
  await bundle(`${folder}/dist`)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = (program: string, ...argv: readonly string[]) => {
  const { stdout, stderr, status } = spawnSync(process.execPath, [`${folder}/bin/${program}`, ...argv], { encoding: 'utf8' })
  return { out: stdout, err: stderr, code: status }
}
const sources = () => JSON.parse(readFileSync(sourcesFile, 'utf8')) as [path: string, changed: number, size: number][]

describe('a bundled program', () => {
  test('runs from its bundle', () => {
    expect(run('capstan.js', 'new', 'extension', '--help')).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringContaining('Usage: capstan new'),
    })
    expect(run('capstan.js', 'hooks', 'openapi')).toMatchObject({ code: 0, err: '', out: expect.stringContaining('openapi: ') })
    expect(run('envtest.js', 'kube-apiserver', '--version')).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringMatching(/^Kubernetes v1\./),
    })
  })

  test.each([
    [
      'has another modification time',
      (all) => all.map(([path, changed, size], i) => [path, i === 7 ? changed - 1 : changed, size]),
    ],
    ['has another size', (all) => all.map(([path, changed, size], i) => [path, changed, i === 7 ? size + 1 : size])],
    ['does not exist', (all) => [...all, ['../src/gone.ts', 0, 0]]],
  ] as const satisfies [string, (all: ReturnType<typeof sources>) => unknown][])(
    'runs from its sources when a source that sources.json lists %s',
    (_, change) => {
      const before = sources()
      writeFileSync(sourcesFile, JSON.stringify(change(before)))
      try {
        for (const program of ['capstan.js', 'envtest.js'])
          expect(run(program, 'version')).toEqual({ code: 0, err: '', out: 'from its sources\n' })
      } finally {
        writeFileSync(sourcesFile, JSON.stringify(before))
      }
    },
  )

  test('runs from its sources when the bundle has no sources.json', () => {
    const before = readFileSync(sourcesFile)
    rmSync(sourcesFile)
    try {
      expect(run('capstan.js', 'version').out).toBe('from its sources\n')
    } finally {
      writeFileSync(sourcesFile, before)
    }
  })
})

test('the bundle contains sources of our packages, and of no other package except commander', () => {
  const paths = sources().map(([path]) => path)
  expect(
    paths.filter((path) => path.endsWith('/cli/src/main.ts') || path.endsWith('/apiserver/src/http/body/yaml.ts')),
  ).toHaveLength(2)
  expect(paths.filter((path) => path.includes('node_modules') && !path.includes('/commander/'))).toEqual([])
})
