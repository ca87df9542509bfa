import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { X509Certificate } from 'node:crypto'
import { hours, VirtualClock } from '@capstan/kube'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openAccess, openSigningKey } from './access.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'capstan-access-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const open = (clock: VirtualClock) => openAccess(clock, folder, { ip: ['127.0.0.1'], dns: ['localhost'] })

test('keeps certificates over a restart', async () => {
  const clock = new VirtualClock()
  expect(await open(clock)).toEqual(await open(clock))
})

test('replaces the serving certificate when it lacks an address of the server', async () => {
  const clock = new VirtualClock()
  const before = await open(clock)
  const after = await openAccess(clock, folder, { ip: ['127.0.0.1', '10.0.0.1'], dns: ['localhost'] })
  expect(new X509Certificate(after.server.certificate).subjectAltName).toContain('10.0.0.1')
  expect(after).toEqual({ ...before, server: after.server })
})

test('replaces certificates that are not valid yet: the clock was wrong at an earlier start', async () => {
  const wrong = await open(new VirtualClock(Date.UTC(2029, 0, 1)))
  const right = new VirtualClock()
  const { authority, server, admin } = await open(right)
  expect(authority).not.toEqual(wrong.authority)
  for (const { certificate } of [authority, server, admin]) {
    const { validFrom } = new X509Certificate(certificate)
    expect(Date.parse(validFrom)).toBe(right.now() - hours(24))
    expect(new X509Certificate(certificate).verify(new X509Certificate(authority.certificate).publicKey)).toBe(true)
  }
})

test.each(['ca', 'apiserver', 'admin'] as const)(
  'replaces the certificate %s and its key when the key belongs to another certificate or is empty',
  async (name) => {
    const clock = new VirtualClock()
    const before = await open(clock)
    const replaced = { ca: before.authority, apiserver: before.server, admin: before.admin }[name]
    for (const key of [before[name === 'admin' ? 'server' : 'admin'].key, '']) {
      writeFileSync(join(folder, `${name}.key`), key)
      const { authority, server } = await open(clock)
      const [pem, text] = ['crt', 'key'].map((end) => readFileSync(join(folder, `${name}.${end}`), 'utf8'))
      expect(text).not.toBe(key)
      expect(pem).toContain('BEGIN CERTIFICATE')
      expect(pem).not.toBe(replaced.certificate)
      expect(new X509Certificate(server.certificate).verify(new X509Certificate(authority.certificate).publicKey)).toBe(true)
    }
  },
)

test('replaces a signing key that is empty', async () => {
  const key = await openSigningKey(folder)
  expect(await openSigningKey(folder)).toBe(key)
  writeFileSync(join(folder, 'sa.key'), '')
  expect(await openSigningKey(folder)).toMatch(/^-----BEGIN (?:EC )?PRIVATE KEY-----/)
})
