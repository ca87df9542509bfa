import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, hours, Namespace, systemClock, systemRandom, VirtualClock } from '@capstan/kube'
import { httpsTransport, invalidNow, issueCertificate, loadKubeconfig, makeAuthority } from '@capstan/kube/node'
import { afterAll, expect, test } from 'vitest'
import { start } from '../test-io.ts'

const folder = mkdtempSync(join(tmpdir(), 'capstan-apiserver-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const pathOf = (name: string) => join(folder, name)

/** Writes a serving certificate with its chain, and its key; returns the flags that name the two files. */
async function servingFlags(clock = systemClock, validity = hours(24)): Promise<string[]> {
  const authority = await makeAuthority(clock, { commonName: 'elsewhere' })
  const usages = ['server'] as const
  const serving = await issueCertificate(authority, clock, { commonName: 's', usages, ipAddresses: ['127.0.0.1'], validity })
  writeFileSync(pathOf('serving.crt'), serving.certificate + authority.certificate)
  writeFileSync(pathOf('serving.key'), serving.key)
  return ['--tls-cert-file', pathOf('serving.crt'), '--tls-private-key-file', pathOf('serving.key')]
}

test('clients with the written kubeconfig trust a serving certificate from a file', async () => {
  const server = start(['apiserver', '--secure-port', '0', '--kubeconfig', pathOf('kubeconfig'), ...(await servingFlags())])
  await server.line(/^API server ready/)
  const access = await loadKubeconfig(pathOf('kubeconfig'))
  const transport = httpsTransport(access, { clock: systemClock, random: systemRandom, userAgent: 'test' })
  try {
    expect((await createClient(transport).list(Namespace)).items.length).toBeGreaterThan(0)
  } finally {
    transport.close()
  }
  expect([await server.interrupt(), server.err.join()]).toEqual([0, ''])
})

test('an expired certificate in --tls-cert-file is reported with its file and dates', async () => {
  const flags = await servingFlags(new VirtualClock(Date.UTC(2020, 0, 2)))
  const server = start(['apiserver', '--secure-port', '0', ...flags])
  await server.line(/^API server ready/)
  await server.interrupt()
  expect(server.err.join()).toMatch(
    /^capstan: warning: --tls-cert-file .*serving\.crt: the certificate is valid from 2020-01-0\S+ to 2020-01-03T00:00:00Z, and now is \S+: clients will reject it$/,
  )
})

test('an expired certificate authority in --client-ca-file is reported with its file and dates', async () => {
  const past = await makeAuthority(new VirtualClock(Date.UTC(2020, 0, 2)), { commonName: 'past', validity: hours(24) })
  const present = await makeAuthority(systemClock, { commonName: 'present' })
  writeFileSync(pathOf('clients.crt'), present.certificate + past.certificate)
  const server = start(['apiserver', '--secure-port', '0', '--client-ca-file', pathOf('clients.crt')])
  await server.line(/^API server ready/)
  await server.interrupt()
  expect(server.err.join('\n')).toMatch(
    /^capstan: warning: --client-ca-file .*clients\.crt: the certificate is valid from 2020-01-0\S+ to 2020-01-03T00:00:00Z, and now is \S+: client certificates that it signed are rejected$/,
  )
})

test('a certificate is valid from notBefore to notAfter, both included', async () => {
  const clock = new VirtualClock(Date.UTC(2020, 0, 2))
  const { certificate } = await makeAuthority(clock, { commonName: 'a', validity: hours(1), backdate: 0 })
  const [from, until] = [clock.now(), clock.now() + hours(1)]
  expect([from, until].map((now) => invalidNow(certificate, now))).toEqual([undefined, undefined])
  expect([from - 1, until + 1].every((now) => invalidNow(certificate, now) !== undefined)).toBe(true)
})
