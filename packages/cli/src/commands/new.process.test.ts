import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { BeforeClusterCreate, hookCatalog } from '@capstan/api'
import { callServer, fixture, httpsHookTransport } from '@capstan/extension'
import { systemClock } from '@capstan/kube'
import { afterAll, describe, expect, test } from 'vitest'
import { runToEnd } from '../test-io.ts'
import { manifestsIn } from '../test-manifests.ts'

const root = mkdtempSync(join(tmpdir(), 'capstan-new-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** Hooks that an extension can handle: all except Discovery, which the extension server handles itself. */
const everyHook = hookCatalog.filter(({ singleton }) => !singleton).map(({ name }) => name)
const create = (name: string, ...flags: string[]) =>
  runToEnd(['new', 'extension', name, '--link', '--dir', join(root, name), ...flags])

/** Timeout for tests that start programs, which takes long on a busy machine. */
const patient = { timeout: 120_000 }

/**
 * Returns a function that runs a program in `folder` without variables that npm and vitest set for this test: NODE_OPTIONS, and those that
 * begin with `npm_` or `VITEST`.
 */
const shell = (folder: string) => {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_|^NODE_OPTIONS$|^VITEST/i.test(name)))
  return async (program: string, ...args: string[]): Promise<{ code: number; text: string }> =>
    promisify(execFile)(program, args, { cwd: folder, env }).then(
      ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
      (err: { code: number; stdout: string; stderr: string }) => ({ code: err.code, text: err.stdout + err.stderr }),
    )
}

describe('a project', patient, () => {
  test('passes its own tests after an installation without a network; an error of a handler fails a test, and a type error fails the check', async () => {
    await create('fresh')
    const folder = join(root, 'fresh')
    const run = shell(folder)
    expect(await run('npm', 'install', '--offline', '--no-audit', '--no-fund')).toMatchObject({ code: 0 })
    const passing = await run('npm', 'test')
    expect(passing.text).toMatch(/pass 3\n[^]*fail 0\n/)
    expect(passing.code).toBe(0)

    const extension = readFileSync(join(folder, 'extension.ts'), 'utf8')
    writeFileSync(join(folder, 'extension.ts'), extension.replace('return holdFor', "throw new Error('boom')\n  return holdFor"))
    expect(await run('npm', 'test')).toMatchObject({ code: 1, text: expect.stringContaining('fail 1') })
    writeFileSync(join(folder, 'extension.ts'), extension.replace('holdFor(10,', 'holdFor(10, 20,'))
    expect(await run('npm', 'run', 'check')).toMatchObject({
      code: 1,
      text: expect.stringContaining('extension.ts(9,'),
    })
  })

  test('with every hook passes its tests and type checks; its bundle serves with the generated certificate', async () => {
    await create('every', '--hook', everyHook.join(','), '--certificates', 'self-made')
    const folder = join(root, 'every')
    const run = shell(folder)
    expect(await run('npm', 'install', '--offline', '--no-audit', '--no-fund')).toMatchObject({ code: 0 })
    expect(await run('npm', 'test')).toMatchObject({ code: 0, text: expect.stringContaining(`pass ${everyHook.length + 2}`) })
    expect(await run('npm', 'run', 'check')).toMatchObject({ code: 0 })
    expect(await run('npm', 'run', 'build')).toMatchObject({ code: 0 })

    // Files that the Dockerfile copies and the Deployment mounts.
    const image = join(root, 'image')
    mkdirSync(image)
    cpSync(join(folder, 'dist/main.js'), join(image, 'main.mjs'))
    const certificate = join(folder, 'manifests/30-certificate.yaml')
    expect(statSync(certificate).mode & 0o777).toBe(0o600)
    expect(readFileSync(join(folder, '.gitignore'), 'utf8')).toContain('manifests/30-certificate.yaml\n')
    const [secret] = manifestsIn(certificate) as unknown as [{ data: { [file: string]: string } }]
    for (const [file, data] of Object.entries(secret.data)) writeFileSync(join(image, file), Buffer.from(data, 'base64'))

    const flags = [
      '--webhook-cert-dir',
      '.',
      '--webhook-host',
      '127.0.0.1',
      '--webhook-port',
      '0',
      '--health-addr',
      '0',
      '--diagnostics-address',
      '0',
      '--log-level',
      'error',
    ]
    const program: ChildProcess = spawn(process.execPath, ['main.mjs', ...flags], {
      cwd: image,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = (await once(createInterface({ input: program.stdout! }), 'line')) as [string]
    const { port } = new URL((JSON.parse(line) as { url: string }).url)
    const transport = httpsHookTransport()
    const { response } = await callServer(BeforeClusterCreate, {
      server: { url: `https://localhost:${port}`, caBundle: secret.data['ca.crt']! },
      request: fixture(BeforeClusterCreate),
      timeoutSeconds: 10,
      transport,
      clock: systemClock,
    })
    expect(response).toMatchObject({ status: 'Success', retryAfterSeconds: 0 })
    transport.close()
    program.kill('SIGTERM')
    expect(await once(program, 'exit')).toEqual([0, null])
  })
})

describe('a provider', patient, () => {
  test('with every kind passes conform and type checks unchanged, and builds', async () => {
    const folder = join(root, 'every-kind')
    const flags = ['--kinds', 'cluster,machine,machinepool,controlplane', '--link', '--dir', folder]
    expect((await runToEnd(['new', 'provider', 'every-kind', ...flags])).code).toBe(0)
    const run = shell(folder)
    expect(await run('npm', 'install', '--offline', '--no-audit', '--no-fund')).toMatchObject({ code: 0 })
    expect(await run('npm', 'test')).toMatchObject({ code: 0, text: expect.stringMatching(/pass 1\n[^]*fail 0\n/) })
    expect(await run('npm', 'run', 'check')).toMatchObject({ code: 0 })
    expect(await run('npm', 'run', 'build')).toMatchObject({ code: 0 })
  })
})
