import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BeforeClusterCreate, Cluster, ClusterClass, hookCatalog } from '@capstan/api'
import { callServer, fixture, httpsHookTransport, readTape } from '@capstan/extension'
import { createClient, seededRandom, systemClock } from '@capstan/kube'
import { httpsTransport, loadKubeconfig, makeAuthority } from '@capstan/kube/node'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runToEnd, start, type Started } from '../test-io.ts'

const root = mkdtempSync(join(tmpdir(), 'capstan-dev-'))
const modules = fileURLToPath(new URL('../../../../node_modules', import.meta.url))
symlinkSync(modules, join(root, 'node_modules'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let folder: string
let folderCount = 0
beforeEach(() => {
  folder = join(root, String(folderCount++))
  mkdirSync(folder)
})

const running: Started[] = []
afterEach(async () => {
  for (const command of running.splice(0)) await command.interrupt()
  expect(children()).toEqual([])
})

const dev = (...flags: string[]): Started => {
  const command = start(['dev', folder, '--data', join(folder, '.capstan'), '--port', '0', '--extension-port', '0', ...flags])
  running.push(command)
  return command
}

/** Returns the ids of running extension processes that this process started. */
const children = (): string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      const [, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /, '')
        .split(' ')
      return Number(parent) === process.pid && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('dev-child')
    } catch {
      return false
    }
  })

const save = (text: string, file = 'extension.ts') => writeFileSync(join(folder, file), text)

const extension = ({ hook = 'BeforeClusterCreate', name = 'gate', answer = "proceedNow('one')" }) => `
import { ${hook} } from '@capstan/api'
import { defineExtension, holdFor, on, proceedNow } from '@capstan/extension'

export const extension = defineExtension({
  name: 'quota',
  handlers: [on(${hook}, { name: '${name}' }, ({ settings }) => ${answer})],
})
`

/** Returns the URL of the extension from the output of the command. */
const urlOf = async (command: Started): Promise<string> =>
  /https:\S+/.exec(await command.line(/ExtensionServed|Extension: served/))![0]

async function answerOf(url: string, hook = 'BeforeClusterCreate'): Promise<{ handler: string; response: { message?: string } }> {
  const { out, err } = await runToEnd([
    'hooks',
    'call',
    url,
    hook,
    '--ca',
    join(folder, '.capstan/extension-ca.crt'),
    '-o',
    'json',
  ])
  expect(err).toBe('')
  return JSON.parse(out) as Awaited<ReturnType<typeof answerOf>>
}

/** Timeout for tests that start processes, which takes long on a busy machine. */
const patient = { timeout: 60_000 }

describe('a saved file', patient, () => {
  test('changes the next response, independent of how it is saved; a module that does not load changes nothing', async () => {
    save(extension({}))
    const command = dev('--no-demo')
    const url = await urlOf(command)
    await command.line(/ExtensionConfig quota: discovered, handlers: gate$/)
    expect(await answerOf(url)).toMatchObject({ handler: 'gate', response: { message: 'one' } })

    save(extension({ answer: 'holdFor(7, `two`)', name: 'second' }))
    await command.line(/reloaded after \d+ ms, handlers: second/)
    expect(await answerOf(url)).toMatchObject({ handler: 'second', response: { message: 'two', retryAfterSeconds: 7 } })
    await command.line(/ExtensionConfig quota: discovered, handlers: second$/)

    // Some editors write a new file and rename it, so that no incomplete file is visible.
    save(extension({ answer: 'proceedNow(`three`)', name: 'third' }), 'extension.ts.new')
    renameSync(join(folder, 'extension.ts.new'), join(folder, 'extension.ts'))
    await command.line(/reloaded after \d+ ms, handlers: third/)
    expect((await answerOf(url)).response.message).toBe('three')

    save(`${extension({})}\nconst half =`)
    await command.line(
      /extension\.ts: not loaded: extension\.ts:\d+: Expression expected \(the previous version keeps running\)$/,
    )
    save("throw new Error('at load')\n")
    await command.line(/not loaded: extension\.ts:1: at load/)
    save('export const settings = {}\n')
    await command.line(/not loaded: exports no extension \(there are settings\): expected `export const extension/)
    save("import './lib/rules.ts'\n")
    await command.line(/not loaded: Cannot find module '.*rules\.ts' imported from .*extension\.ts/)
    expect((await answerOf(url)).response.message).toBe('three')

    // Creating a module that an import already names triggers a reload, and so does each later change of it.
    save(extension({ answer: 'proceedNow(rule)', name: 'fourth' }).replace('\n', "\nimport { rule } from './lib/rules.ts'\n"))
    mkdirSync(join(folder, 'lib'))
    save("export const rule = 'four'\n", 'lib/rules.ts')
    await command.line(/reloaded after \d+ ms, handlers: fourth/)
    expect((await answerOf(url)).response.message).toBe('four')
    save("export const rule = 'five'\n", 'lib/rules.ts')
    while ((await answerOf(url)).response.message !== 'five') await Promise.resolve()

    expect(await command.interrupt()).toBe(0)
    expect(command.err).toEqual([])
  })

  test('makes no call fail: calls during the reload get a response of the old or the new module', async () => {
    save(extension({ answer: "proceedNow('0')" }))
    const command = dev('--no-demo')
    const url = await urlOf(command)
    await command.line(/loaded after/)
    const caBundle = readFileSync(join(folder, '.capstan/extension-ca.crt')).toString('base64')
    const transport = httpsHookTransport()
    const callOnce = async () => {
      const call = {
        server: { url, caBundle },
        request: fixture(BeforeClusterCreate),
        timeoutSeconds: 10,
        transport,
        clock: systemClock,
      }
      return ((await callServer(BeforeClusterCreate, { ...call, handler: 'gate' })).response as { message?: string }).message
    }
    const answers: (string | undefined)[] = []
    let saving = true
    const caller = async () => {
      while (saving) answers.push(await callOnce())
    }
    const callers = [caller(), caller(), caller()]
    for (const generation of ['1', '2', '3']) {
      save(extension({ answer: `proceedNow('${generation}')` }))
      while (answers.at(-1) !== generation) await Promise.race([...callers, callOnce()])
    }
    saving = false
    await Promise.all(callers)
    transport.close()
    expect([...new Set(answers)]).toEqual(['0', '1', '2', '3'])
  })

  test('makes core repeat blocked calls at once, without waiting for the retry time of the old handler', async () => {
    save(extension({ answer: 'holdFor(3600, `not today`)' }))
    const tapePath = join(folder, 'hooks.jsonl')
    const command = dev('--record-hooks', tapePath)
    await command.line(/Cluster default\/demo: BeforeClusterCreate called on gate\.quota: wait 3600 s \(not today\)$/)
    save(extension({ answer: 'proceedNow(`today`)' }))
    await command.line(/Cluster default\/demo: BeforeClusterCreate called on gate\.quota: proceed \(today\)$/)
    await command.line(/Cluster default\/demo: Available/)
    expect(await command.interrupt()).toBe(0)
    const taped = (await readTape(tapePath)).calls.filter(({ hook }) => hook === 'BeforeClusterCreate')
    expect(taped.length).toBeGreaterThanOrEqual(2)
  })
})

test(
  'the demo ClusterClass names a ValidateTopology handler once the extension also has a GeneratePatches handler; the handler gets the settings of the manifest',
  patient,
  async () => {
    mkdirSync(join(folder, 'manifests'))
    writeFileSync(join(folder, 'package.json'), '{}')
    save(
      'kind: ConfigMap\n---\nkind: ExtensionConfig\nmetadata: { name: from-manifest }\nspec: { settings: { why: quota } }\n',
      'manifests/all.yaml',
    )
    const validation = extension({ hook: 'ValidateTopology', answer: "({ kind: 'fail', message: `refused: ${settings.why}` })" })
    save(validation)
    const command = dev('--output', 'json')
    await command.line(/ExtensionNotRegistered.*Handlers are not called: gate\.from-manifest\. /)
    const generation = "on(GeneratePatches, { name: 'patch' }, () => proceedWith({ items: [] }))"
    save(
      validation
        .replace('{ ValidateTopology }', '{ GeneratePatches, ValidateTopology }')
        .replace('proceedNow }', 'proceedNow, proceedWith }')
        .replace('handlers: [', `handlers: [${generation}, `),
    )
    const line = await command.line(/"HookFailed"/)
    expect(JSON.parse(line)).toMatchObject({
      cluster: 'default/demo',
      text: expect.stringMatching(/gate\.from-manifest: failed: .*refused: quota/),
    })
  },
)

test('all hooks of a new project are called in the lifecycle of a Cluster, and no call fails', patient, async () => {
  const hooks = hookCatalog.filter(({ singleton }) => !singleton).map(({ name }) => name)
  const created = await runToEnd(['new', 'extension', 'every', '--dir', folder, '--hook', hooks.join(',')])
  expect(created.code).toBe(0)
  const command = dev()
  await command.line(/Cluster default\/demo: Available/)
  const transport = httpsTransport(await loadKubeconfig(join(folder, '.capstan/kubeconfig')), {
    clock: systemClock,
    random: seededRandom(1),
  })
  const client = createClient(transport)
  const key = { namespace: 'default', name: 'demo' }
  const body = { spec: { topology: { version: 'v1.38.1' } } }
  await client.patch(Cluster, key, { type: 'merge', body })
  await command.line(/Cluster default\/demo: upgraded to v1\.38\.1/)

  // After a reload, core discovers the variables of the ClusterClass again.
  const source = readFileSync(join(folder, 'extension.ts'), 'utf8')
  save(source.replace("default: 'eu1'", "default: 'us1'"))
  await command.line(/reloaded/)
  const changed = new AbortController()
  for await (const { object } of await client.watch(ClusterClass, { signal: changed.signal }))
    if (JSON.stringify(object.status?.variables).includes('us1')) break
  changed.abort()

  await client.delete(Cluster, key)
  await command.line(/Cluster default\/demo: deleted/)
  transport.close()
  const called = hooks.filter((hook) => command.out.some((line) => line.includes(`${hook} called on`)))
  expect(hooks.filter((hook) => !called.includes(hook))).toEqual([])
  expect(command.out.filter((line) => /failed|not reconciled/.test(line))).toEqual([])
})

test('prints the output of handlers, and the position of their errors', patient, async () => {
  save(extension({ answer: "{ console.log('printed'); throw new Error('boom') }" }))
  const command = dev()
  await command.line(/ Extension: printed$/)
  expect(await command.line(/Handler gate: /)).toMatch(/Handler gate: Handler failed err=extension\.ts:7: boom$/)
})

test('an extension that does not load at first is loaded when it is fixed', patient, async () => {
  save("throw new Error('at load')\n")
  const command = dev('--no-demo')
  await command.line(/not loaded: extension\.ts:1: at load$/)
  save(extension({}))
  await command.line(/Extension quota: loaded after/)
})

test('an extension that ends its own process is started again', patient, async () => {
  save(extension({ answer: '(process.exit(3), proceedNow())' }))
  const command = dev('--no-demo')
  const url = await urlOf(command)
  await command.line(/loaded after/)
  const { code, err } = await runToEnd([
    'hooks',
    'call',
    url,
    'BeforeClusterCreate',
    '--ca',
    join(folder, '.capstan/extension-ca.crt'),
  ])
  expect({ code, err }).toMatchObject({
    code: 1,
    err: expect.stringContaining('the process of the extension ended: exit code 3'),
  })
  await command.line(/its process ended \(exit code 3\): it is started again$/)
  await command.line(/Extension quota: reloaded/)
})

test('Ctrl-C stops the command right after its start, and while a handler never returns', patient, async () => {
  save(extension({ answer: '{ console.log(`forever`); for (;;); }' }))
  const early = dev()
  expect(await early.interrupt()).toBe(0)
  const later = dev('--no-demo')
  const url = await urlOf(later)
  await later.line(/loaded after/)
  const call = runToEnd(['hooks', 'call', url, 'BeforeClusterCreate', '--ca', join(folder, '.capstan/extension-ca.crt')])
  await later.line(/Extension: forever/)
  expect(await later.interrupt()).toBe(0)
  expect((await call).code).toBe(1)
  expect([...early.err, ...later.err]).toEqual([])
})

test('the extension listens on loopback, and clients that trust another authority reject it', patient, async () => {
  save(extension({}))
  const command = dev('--no-demo')
  const url = await urlOf(command)
  expect(new URL(url).hostname).toBe('127.0.0.1')
  await command.line(/loaded after/)
  const other = join(folder, 'other.crt')
  writeFileSync(other, (await makeAuthority(systemClock, { commonName: 'other' })).certificate)
  const { code, err } = await runToEnd(['hooks', 'call', url, 'BeforeClusterCreate', '--ca', other])
  expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/^capstan: UnknownAuthority: /) })
})

describe('an error is reported for', patient, () => {
  test.each<{ what: string; prepare: () => string[]; code: number; message: RegExp }>([
    {
      what: 'a folder without an extension',
      prepare: () => [folder],
      code: 2,
      message: /^capstan: there is no extension in .*: expected extension\.ts\n.*capstan new extension NAME/,
    },
    {
      what: 'a missing file',
      prepare: () => [join(folder, 'other.ts')],
      code: 2,
      message: /^capstan: there is no .*other\.ts\n/,
    },
    {
      what: 'the data folder of another command',
      prepare: () => {
        save(extension({}))
        mkdirSync(join(folder, '.capstan/db'), { recursive: true })
        return [folder, '--data', join(folder, '.capstan')]
      },
      code: 2,
      message: /\.capstan contains the state of another command, such as `capstan up`\nGive another folder with --data\.$/,
    },
  ])('$what', async ({ prepare, code, message }) => {
    const result = await runToEnd(['dev', ...prepare()])
    expect(result).toMatchObject({ code, out: '' })
    expect(result.err).toMatch(message)
  })

  test('a port that is in use', async () => {
    save(extension({}))
    const occupant = createServer()
    const port = await new Promise<number>((resolve) => {
      occupant.listen(0, '127.0.0.1', () => resolve((occupant.address() as { port: number }).port))
    })
    const argv = ['dev', folder, '--data', join(folder, '.capstan'), '--port', '0', '--extension-port', String(port)]
    const { code, err } = await runToEnd(argv)
    occupant.close()
    expect({ code, err }).toEqual({
      code: 1,
      err: `capstan: Cannot listen on 127.0.0.1:${port}: the port is in use by another process. Choose another with --extension-port, or any free one with --extension-port 0`,
    })
  })
})
