/**
 * Runs the `capstan` commands of README.md. For commands that cannot run here, checks only the flags. Runs the programs in the READMEs of
 * some packages (`programs`).
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runToEnd, type Started, start } from './test-io.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const read = (file: string) => readFileSync(join(root, file), 'utf8')
const readme = read('README.md')

const folder = mkdtempSync(join(tmpdir(), 'capstan-readme-'))
const kubeconfig = join(folder, 'kubeconfig')
let server: Started
beforeAll(async () => {
  server = start(['apiserver', '--kubeconfig', kubeconfig, '--secure-port', '0', '--enable-priority-and-fairness=false'])
  await server.line(/ready/)
})
afterAll(async () => {
  await server.interrupt()
  rmSync(folder, { recursive: true, force: true })
})

describe('README.md', () => {
  test('begins with commands that CI runs', () => {
    const [, block = ''] = /^```\n([^]*?)^```$/m.exec(readme) ?? []
    const commands = block
      .trim()
      .split('\n')
      .map((line) => line.split('#')[0]!.trim())
    expect(commands).toEqual(['npm start', 'npm test'])
    const scripts = Object.keys((JSON.parse(read('package.json')) as { scripts: object }).scripts)
    for (const command of commands) {
      expect(scripts).toContain(command.replace('npm ', ''))
      expect(read('.ci/run')).toMatch(new RegExp(`^step '${command}' `, 'm'))
    }
  })

  const commands = [...readme.matchAll(/npx @capstan\/cli ([\w][^`)]*)/g)].map(([, command]) => command!.trim())
  const testedCommands: Readonly<Record<string, () => Promise<void>>> = {
    'lint config/crd': async () => expect((await runToEnd(['lint', join(root, 'config/crd')])).code).toBe(0),
    'envtest bin/envtest': async () => expect((await runToEnd(['envtest', join(folder, 'envtest')])).code).toBe(0),
    // This server was started before the tests.
    'apiserver --kubeconfig FILE': async () => expect(await server.line(/ready/)).toContain(kubeconfig),
    'manager --kubeconfig FILE --webhook-port 0': async () => {
      const manager = start(['manager', '--kubeconfig', kubeconfig, '--webhook-port', '0'])
      await manager.line(/ready/)
      expect(await manager.interrupt()).toBe(0)
    },
  }

  test('contains the commands that this test runs', () =>
    expect(commands).toEqual(expect.arrayContaining(Object.keys(testedCommands))))

  /** Checks only the flags of a command that cannot run here, for example because it needs a running provider. */
  const checkFlags = async (command: string) => {
    const [name, ...words] = command.split(' ')
    const { code, out } = await runToEnd([name!, '--help'])
    expect(code).toBe(0)
    for (const flag of words.filter((word) => word.startsWith('-'))) expect(out).toContain(`${flag} `)
  }
  test.each([...new Set(commands)])('capstan %s', (command) => testedCommands[command]?.() ?? checkFlags(command))
})

/** By package, additions to the program of its README: code before and after the program, and the expected output. */
const programs: Readonly<Record<string, { before?: string; after: string; prints: RegExp }>> = {
  api: {
    before: `
      const client = { get: async () => ({}) }
      const infraCluster = { status: { initialization: { provisioned: true } } }`,
    after: 'console.log(provisioned)',
    prints: /^true$/m,
  },
  conformance: { after: '', prints: /^MUST infra-machine\.template /m },
  controller: {
    before: `
      import { createApiServer } from '@capstan/kubernetes-kinds'
      const transport = createApiServer({ clock: systemClock, random: seededRandom(2) }).transport()`,
    after: `
      const key = { namespace: 'default', name: 'a' }
      const client = createClient(transport)
      await client.create(ConfigMap, { metadata: key, data: { name: 'world' } })
      for await (const { object } of await client.watch(ConfigMap, { namespace: 'default', signal: new AbortController().signal }))
        if (object.data?.greeting) {
          console.log(object.data.greeting)
          process.exit()
        }`,
    prints: /^Hello world$/m,
  },
  core: { after: `console.log('started'); process.exit()`, prints: /^started$/m },
  kube: { after: 'process.exit()', prints: /^hello for world$/m },
  lab: { after: `await management.close(); stop.abort(); console.log('closed'); process.exit()`, prints: /^closed$/m },
}

describe('the program of the README', () => {
  test.each(Object.keys(programs))('of %s runs', async (name) => {
    const { before = '', after, prints } = programs[name]!
    const [, program = ''] = /^```ts\n(import [^]*?)^```$/m.exec(read(`packages/${name}/README.md`)) ?? []
    const args = ['--input-type=module-typescript', '-e', [before, program, after].join('\n')]
    const env = { ...process.env, KUBECONFIG: kubeconfig }
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: join(root, 'packages', name), env })
    expect(stderr).toBe('')
    expect(stdout).toMatch(prints)
  })
})
