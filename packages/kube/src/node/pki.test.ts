import { X509Certificate } from 'node:crypto'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { expect, test } from 'vitest'
import { hours, systemClock, VirtualClock } from '../clock.ts'
import { certificateExpiry, issueCertificate, makeAuthority } from './pki.ts'

const clock = new VirtualClock(Date.UTC(2026, 0, 1))

test('an issued certificate has the requested subject, names and validity, is signed by the authority, and is no authority', async () => {
  const ca = await makeAuthority(clock, { commonName: 'test-ca' })
  const issued = await issueCertificate(ca, clock, {
    commonName: 'kubernetes-admin',
    organizations: ['system:masters', 'ops, "quoted" + more'],
    usages: ['client', 'server'],
    dnsNames: ['localhost'],
    ipAddresses: ['127.0.0.1', '::1'],
    validity: hours(1),
  })
  const certificate = new X509Certificate(issued.certificate)
  expect(certificate.toLegacyObject().subject).toEqual({ O: ['system:masters', 'ops, "quoted" + more'], CN: 'kubernetes-admin' })
  expect(certificate.subjectAltName).toBe('DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1')
  expect(certificate.checkIssued(new X509Certificate(ca.certificate))).toBe(true)
  expect(certificate.verify(new X509Certificate(ca.certificate).publicKey)).toBe(true)
  expect(certificate.ca).toBe(false)
  expect(new X509Certificate(ca.certificate).ca).toBe(true)
  expect(certificateExpiry(issued.certificate)).toBe(clock.now() + hours(1))
})

test('certificates do not outlive their authority', async () => {
  const ca = await makeAuthority(clock, { commonName: 'short', validity: hours(1) })
  const issued = await issueCertificate(ca, clock, { commonName: 'x', usages: ['client'], validity: hours(2) })
  expect(certificateExpiry(issued.certificate)).toBe(clock.now() + hours(1))
})

test('server and client of one authority verify each other over TLS, and verification fails with another authority', async () => {
  const ca = await makeAuthority(systemClock, { commonName: 'test-ca' })
  const otherAuthority = await makeAuthority(systemClock, { commonName: 'test-ca' })
  const server = await issueCertificate(ca, systemClock, { commonName: 'server', usages: ['server'], ipAddresses: ['127.0.0.1'] })
  const client = await issueCertificate(ca, systemClock, { commonName: 'alice', usages: ['client'] })
  const imposter = await issueCertificate(otherAuthority, systemClock, { commonName: 'alice', usages: ['client'] })

  const listening = createServer(
    { key: server.key, cert: server.certificate, ca: ca.certificate, requestCert: true, rejectUnauthorized: false },
    (req, res) => {
      const socket = req.socket as TLSSocket
      const { CN } = socket.getPeerCertificate().subject ?? {}
      res.end(`${typeof CN === 'string' ? CN : ''} ${socket.authorized}`)
    },
  )
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  const { port } = listening.address() as AddressInfo
  const send = (options: object) =>
    new Promise<string>((resolve, reject) => {
      request({ port, host: '127.0.0.1', agent: false, ...options }, (res) => {
        res.setEncoding('utf8').on('data', resolve)
      })
        .on('error', reject)
        .end()
    })
  try {
    expect(await send({ ca: ca.certificate, key: client.key, cert: client.certificate })).toBe('alice true')
    expect(await send({ ca: ca.certificate, key: imposter.key, cert: imposter.certificate })).toBe('alice false')
    await expect(send({ ca: otherAuthority.certificate })).rejects.toThrow(/signature|self-signed|unable to verify/)
  } finally {
    listening.close()
  }
})
