import { execFileSync } from 'node:child_process'
import { accessSync, constants, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigMap, createClient, Namespace, seededRandom, systemClock } from '@capstan/kube'
import { httpsTransport, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { afterAll, describe, expect, test } from 'vitest'
import type { Io } from '../io.ts'
import { runToEnd } from '../test-io.ts'
import { runEtcd } from './etcd.ts'
import { runKubeApiserver } from './kube-apiserver.ts'

const folder = mkdtempSync(join(tmpdir(), 'capstan-envtest-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('capstan envtest', () => {
  test('writes executable launchers, prints the folder, links the kubectl of the PATH, and can run again', async () => {
    const assets = join(folder, 'assets')
    const bin = mkdtempSync(join(folder, 'bin-'))
    writeFileSync(join(bin, 'kubectl'), '#!/bin/sh\n', { mode: 0o755 })
    const { code, out, err } = await runToEnd(['envtest', assets], { PATH: bin })
    expect({ code, out, err }).toEqual({ code: 0, out: assets, err: '' })
    for (const name of ['etcd', 'kube-apiserver', 'kubectl']) accessSync(join(assets, name), constants.X_OK)
    expect(await runToEnd(['envtest', assets], { PATH: bin })).toMatchObject({ code: 0 })
  })

  test.each([
    { name: 'etcd', flag: 'unsafe-no-fsync' },
    { name: 'kube-apiserver', flag: 'cert-dir' },
  ])('the written launcher of $name prints its flags without starting a server', async ({ name, flag }) => {
    const assets = join(folder, 'help')
    await runToEnd(['envtest', assets], {})
    const help = execFileSync(join(assets, name), ['--help'], { encoding: 'utf8' })
    expect(help).toMatch(new RegExp(`^\\s*--${flag}\\b`, 'm'))
  })

  test('reports a missing kubectl', async () => {
    const { code, err } = await runToEnd(['envtest', join(folder, 'without')], {})
    expect(code).toBe(0)
    expect(err).toContain('no kubectl on the PATH')
  })

  test('rejects a folder with another program named kube-apiserver, and writes no launcher', async () => {
    const otherProgramFolder = mkdtempSync(join(folder, 'taken-'))
    writeFileSync(join(otherProgramFolder, 'kube-apiserver'), 'ELF')
    const { code, err } = await runToEnd(['envtest', otherProgramFolder], {})
    expect(code).toBe(1)
    expect(err).toContain(`Cannot write ${otherProgramFolder}/kube-apiserver: another program of that name is there`)
    expect(existsSync(join(otherProgramFolder, 'etcd'))).toBe(false)
  })

  test('ignores a broken link to kubectl in the PATH', async () => {
    const bin = mkdtempSync(join(folder, 'bin-'))
    symlinkSync('/nowhere', join(bin, 'kubectl'))
    expect((await runToEnd(['envtest', join(folder, 'broken')], { PATH: bin })).err).toContain('no kubectl')
  })
})

describe('kube-apiserver of a test environment', () => {
  const required = [
    '--etcd-servers=http://127.0.0.1:1',
    '--service-account-issuer=https://i/',
    '--service-account-key-file=k',
    '--service-account-signing-key-file=/nowhere/k',
  ]
  test.each<{ argv: string[]; expectedError: RegExp }>([
    { argv: ['--nope'], expectedError: /^Error: unknown flag: --nope$/ },
    { argv: ['--nope=x'], expectedError: /^Error: unknown flag: --nope$/ },
    { argv: ['--insecure-port=0'], expectedError: /^Error: unknown flag: --insecure-port$/ },
    {
      argv: [...required, 'one', 'two'],
      expectedError: /^Error: "kube-apiserver" does not take any arguments, got \["one" "two"\]$/,
    },
    { argv: ['--secure-port'], expectedError: /^Error: flag needs an argument: --secure-port$/ },
    { argv: ['--secure-port=x'], expectedError: /^Error: invalid argument "x" for "--secure-port" flag: / },
    {
      argv: ['--secure-port=1'],
      expectedError: /^E\d{4} [\d:.]+ +1 run\.go:72\] "command failed" err="\[--etcd-servers must be specified, /,
    },
    // The error of Capstan, in the log format of upstream.
    { argv: required, expectedError: /"command failed" err="Cannot read --service-account-signing-key-file/ },
  ])(
    'reports the error of the arguments $argv in the format of upstream',
    async ({ argv, expectedError }) => {
      const err: string[] = []
      expect(
        await runKubeApiserver(argv, { ...silentIo(new AbortController().signal), err: (line) => void err.push(line) }),
      ).toBe(1)
      expect(err).toEqual([expect.stringMatching(expectedError)])
    },
    // Less than the 20 seconds for which the server waits for an unreachable etcd: an error must end this wait.
    15_000,
  )

  test('help has the flag --cert-dir at the start of a line, and does not mention the removed flag --insecure-port', async () => {
    const out: string[] = []
    const io = { ...silentIo(new AbortController().signal), out: (line: string) => void out.push(line) }
    expect(await runKubeApiserver(['--help'], io)).toBe(0)
    expect(out.join('\n')).toMatch(/^\s*--cert-dir\b/m)
    expect(out.join('\n')).not.toContain('--insecure-port')
  })
})

describe('a test environment', () => {
  test('has etcd with a health check but no API, authenticates users by certificate, publishes no kube-root-ca.crt, and keeps objects across restarts', async () => {
    const environment = await makeEnvironment()
    await environment.run(async ({ etcd, admin, url }) => {
      expect(await (await fetch(`${etcd}/health`)).json()).toMatchObject({ health: 'true' })
      expect((await fetch(`${etcd}/v3/kv/put`)).status).toBe(404)
      await admin.create(Namespace, { metadata: { name: 'kept' } })
      await admin.create(ConfigMap, { metadata: { name: 'a', namespace: 'kept' }, data: { k: 'v' } })
      expect(url).toMatch(/^https:\/\/127\.0\.0\.1:/)
    })
    await environment.run(async ({ admin }) => {
      expect((await admin.get(ConfigMap, { name: 'a', namespace: 'kept' })).data).toEqual({ k: 'v' })
      // No controllers run, so the namespace has no ConfigMap kube-root-ca.crt.
      expect((await admin.list(ConfigMap, { namespace: 'kept' })).items).toHaveLength(1)
    })
  })

  test('rejects a folder with the state of a real etcd', async () => {
    const dataDir = mkdtempSync(join(folder, 'real-'))
    writeFileSync(join(dataDir, 'member'), '')
    const err: string[] = []
    const io = { ...silentIo(new AbortController().signal), err: (line: string) => void err.push(line) }
    expect(await runEtcd([`--data-dir=${dataDir}`], io)).toBe(1)
    expect(err.join()).toContain('has the state of a real etcd')
  })
})

const silentIo = (signal: AbortSignal): Io => ({
  out() {},
  err() {},
  terminal: undefined,
  pid: process.pid,
  cwd: folder,
  env: {},
  signal,
})

/**
 * Prepares folders, a certificate authority and keys as controller-runtime's envtest does. `run` starts etcd and kube-apiserver on free
 * ports, calls `use`, and stops both programs.
 */
async function makeEnvironment() {
  const dataDir = mkdtempSync(join(folder, 'etcd-'))
  const certDir = mkdtempSync(join(folder, 'certs-'))
  const clock = systemClock
  const authority = await makeAuthority(clock, { commonName: 'envtest-environment' })
  const serving = await issueCertificate(authority, clock, {
    commonName: 'localhost',
    usages: ['server'],
    ipAddresses: ['127.0.0.1'],
    dnsNames: ['localhost'],
  })
  const user = await issueCertificate(authority, clock, {
    commonName: 'admin',
    organizations: ['system:masters'],
    usages: ['client'],
  })
  writeFileSync(`${certDir}/apiserver.crt`, serving.certificate)
  writeFileSync(`${certDir}/apiserver.key`, serving.key)
  writeFileSync(`${certDir}/client-cert-auth-ca.crt`, authority.certificate)
  writeFileSync(`${certDir}/sa-signer.crt`, serving.certificate)
  writeFileSync(`${certDir}/sa-signer.key`, serving.key)

  return {
    async run(use: (environment: { etcd: string; url: string; admin: ReturnType<typeof createClient> }) => Promise<void>) {
      const stop = new AbortController()
      const [etcdPort, port] = [await freePort(), await freePort()]
      const etcd = `http://127.0.0.1:${etcdPort}`
      const url = `https://127.0.0.1:${port}`
      const ready = Promise.withResolvers<void>()
      const errorLines: string[] = []
      const io: Io = {
        ...silentIo(stop.signal),
        err: (line) => void errorLines.push(line),
        out: (line) => (line.includes('ready at') ? ready.resolve() : undefined),
      }
      const etcdDone = runEtcd(
        [`--data-dir=${dataDir}`, `--listen-client-urls=${etcd}`, `--advertise-client-urls=${etcd}`, '--unsafe-no-fsync=true'],
        io,
      )
      const serverDone = runKubeApiserver(
        [
          '--allow-privileged=true',
          '--authorization-mode=RBAC',
          '--bind-address=127.0.0.1',
          `--cert-dir=${certDir}`,
          `--client-ca-file=${certDir}/client-cert-auth-ca.crt`,
          '--disable-admission-plugins=ServiceAccount',
          `--etcd-servers=${etcd}`,
          `--secure-port=${port}`,
          `--service-account-issuer=${url}/`,
          `--service-account-key-file=${certDir}/sa-signer.crt`,
          `--service-account-signing-key-file=${certDir}/sa-signer.key`,
          '--service-cluster-ip-range=10.0.0.0/24',
        ],
        io,
      )
      await Promise.race([
        ready.promise,
        serverDone.then((code) => {
          throw new Error(`kube-apiserver ended with ${code}: ${errorLines.join('\n')}`)
        }),
      ])
      const transport = httpsTransport(
        { server: url, ca: authority.certificate, certificate: user.certificate, key: user.key },
        { clock, random: seededRandom(1), userAgent: 'test' },
      )
      try {
        await use({ etcd, url, admin: createClient(transport) })
      } finally {
        transport.close()
        stop.abort()
        expect(await Promise.all([etcdDone, serverDone])).toEqual([0, 0])
      }
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as { port: number }
  await new Promise((done) => server.close(done))
  return port
}
