import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BeforeClusterCreate, ExtensionConfig } from '@capstan/api'
import { defineExtension, extensionServer, listen, on, proceedNow } from '@capstan/extension'
import { type Client, createClient, getCondition, seededRandom, systemClock } from '@capstan/kube'
import { type CertifiedKey, httpsTransport, issueCertificate, loadKubeconfig, makeAuthority } from '@capstan/kube/node'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runToEnd, start } from './test-io.ts'

const folder = mkdtempSync(join(tmpdir(), 'capstan-client-certificate-'))
const files = { certificate: join(folder, 'client.crt'), key: join(folder, 'client.key') }
const flags = [
  '--runtime-extension-client-cert-file',
  files.certificate,
  '--runtime-extension-client-key-file',
  files.key,
] as const
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let authority: CertifiedKey
let certified: CertifiedKey
const writeFiles = ({ certificate, key }: CertifiedKey) => {
  writeFileSync(files.certificate, certificate)
  writeFileSync(files.key, key)
}
const issueClientCertificate = async (issuer: CertifiedKey) =>
  issueCertificate(issuer, systemClock, { commonName: 'capstan', usages: ['client'] })
beforeAll(async () => {
  authority = await makeAuthority(systemClock, { commonName: 'test' })
  certified = await issueCertificate(authority, systemClock, {
    commonName: 'gate',
    usages: ['server'],
    ipAddresses: ['127.0.0.1'],
  })
})

/** Waits until the condition Discovered has the status; returns its message. */
async function untilDiscovered(client: Client, name: string, status: string): Promise<string> {
  const done = new AbortController()
  try {
    for await (const { object } of await client.watch(ExtensionConfig, { signal: done.signal })) {
      const condition = object.metadata.name === name ? getCondition(object as ExtensionConfig, 'Discovered') : undefined
      if (condition?.status === status) return condition.message ?? ''
    }
    throw new Error('the watch ended')
  } finally {
    done.abort()
  }
}

test('capstan up presents its client certificate to extensions, and the renewed certificate after a renewal', async () => {
  writeFiles(await issueClientCertificate(authority))
  const gate = defineExtension({ name: 'gate', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => proceedNow())] })
  const server = await listen(extensionServer(gate), { ...certified, clientCA: authority.certificate })
  const kubeconfig = join(folder, 'kubeconfig')
  const management = start(['up', '--memory', '--port', '0', '--kubeconfig', kubeconfig, ...flags])
  try {
    await management.line(/ready at/)
    const transport = httpsTransport(await loadKubeconfig(kubeconfig), { clock: systemClock, random: seededRandom(1) })
    const client = createClient(transport)
    const register = (name: string) => {
      const caBundle = Buffer.from(authority.certificate).toString('base64')
      return client.create(ExtensionConfig, { metadata: { name }, spec: { clientConfig: { url: server.url, caBundle } } })
    }
    await register('first')
    await untilDiscovered(client, 'first', 'True')

    const newAuthority = await makeAuthority(systemClock, { commonName: 'other' })
    server.renew({ ...certified, clientCA: newAuthority.certificate })
    await register('second')
    // The server authenticates the client once per connection. It rejects new connections until the files contain a certificate of the
    // new authority.
    writeFiles(await issueClientCertificate(newAuthority))
    await untilDiscovered(client, 'second', 'True')
    await register('third')
    await untilDiscovered(client, 'third', 'True')
    transport.close()
  } finally {
    expect(await management.interrupt()).toBe(0)
    await server.close()
  }
})

test.each([
  [
    'a certificate file without a key file',
    flags.slice(0, 2),
    '--runtime-extension-client-cert-file and --runtime-extension-client-key-file must be given together',
  ],
  [
    'a missing file',
    [...flags.slice(0, 3), '/nowhere'],
    'cannot use the client certificate for runtime extensions: ENOENT: no such file or directory',
  ],
])('%s is rejected', async (_, clientFlags, expectedError) => {
  writeFiles(await issueClientCertificate(authority))
  for (const command of [
    ['up', '--memory'],
    ['manager', '--kubeconfig', join(folder, 'none')],
  ]) {
    const { code, err } = await runToEnd([...command, ...clientFlags])
    expect(code).toBe(2)
    expect(err).toContain(expectedError)
  }
})
