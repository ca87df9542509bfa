import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { systemClock } from '@capstan/kube'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'
import { expect, test } from 'vitest'
import { kubernetesVersion } from './doctor.ts'

test('the version of a server that closes the connection within the response is the text of an error', async () => {
  const authority = await makeAuthority(systemClock, { commonName: 'ca' })
  const usages = ['server'] as const
  const { certificate, key } = await issueCertificate(authority, systemClock, {
    commonName: 's',
    usages,
    ipAddresses: ['127.0.0.1'],
  })
  const server = createServer({ cert: certificate, key }, (_, response) => {
    response.writeHead(200, { 'content-length': 1000 })
    response.write('{', () => response.destroy())
  }).listen(0, '127.0.0.1')
  try {
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    expect(await kubernetesVersion({ server: `https://127.0.0.1:${port}`, ca: authority.certificate })).toBe('aborted')
  } finally {
    server.close()
  }
})
