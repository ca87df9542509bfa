import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../clock.ts'
import { issueCertificate, makeAuthority } from './pki.ts'

const server = createServer((_, res) => res.setHeader('content-type', 'application/json').end('{"kind":"ConfigMap"}'))
let folder: string

beforeAll(async () => {
  const authority = await makeAuthority(systemClock, { commonName: 'authority of the system' })
  const other = await makeAuthority(systemClock, { commonName: 'another authority' })
  const { certificate, key } = await issueCertificate(authority, systemClock, {
    commonName: 's',
    usages: ['server'],
    ipAddresses: ['127.0.0.1'],
  })
  server.setSecureContext({ cert: certificate, key })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  folder = await mkdtemp(join(tmpdir(), 'authorities-'))
  await writeFile(join(folder, 'signer.pem'), authority.certificate)
  await writeFile(join(folder, 'other.pem'), other.certificate)
})

afterAll(async () => {
  server.close()
  server.closeAllConnections()
  await rm(folder, { recursive: true })
})

/** Reads an object from the server in a new process, because a process reads the authorities of the system only once. */
async function read(environment: Readonly<Record<string, string>>): Promise<string> {
  const script = `
    import { createClient } from '${new URL('../client.ts', import.meta.url)}'
    import { systemClock } from '${new URL('../clock.ts', import.meta.url)}'
    import { ConfigMap } from '${new URL('../kinds/config-map.ts', import.meta.url)}'
    import { seededRandom } from '${new URL('../random.ts', import.meta.url)}'
    import { httpsTransport } from '${new URL('./https-transport.ts', import.meta.url)}'
    const server = 'https://127.0.0.1:${(server.address() as AddressInfo).port}'
    const transport = httpsTransport({ server }, { clock: systemClock, random: seededRandom(1) })
    const outcome = await createClient(transport).get(ConfigMap, { namespace: 'n', name: 'a' }).then(({ kind }) => kind, (err) => err.message)
    console.log(outcome)
    process.exit()`
  const noAuthorities = { SSL_CERT_FILE: join(folder, 'absent'), SSL_CERT_DIR: join(folder, 'absent') }
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    env: { PATH: process.env.PATH, ...noAuthorities, ...environment },
  })
  return stdout.trim()
}

test('trusts the authorities of the system when the client has no `ca`', async () => {
  expect(await read({ SSL_CERT_FILE: join(folder, 'signer.pem') })).toBe('ConfigMap')
})

test('also trusts the authorities of NODE_EXTRA_CA_CERTS, whether or not the system has authorities', async () => {
  const extra = { NODE_EXTRA_CA_CERTS: join(folder, 'signer.pem') }
  expect(await read(extra)).toBe('ConfigMap')
  expect(await read({ ...extra, SSL_CERT_FILE: join(folder, 'other.pem') })).toBe('ConfigMap')
})

test('trusts no other authority', async () => {
  expect(await read({ SSL_CERT_FILE: join(folder, 'other.pem') })).toMatch(/unable to verify|unable to get local issuer/)
})
