import { X509Certificate } from 'node:crypto'
import { connect } from 'node:tls'
import { VirtualClock } from '@capstan/kube'
import { expect, test, vi } from 'vitest'
import { serveExtension } from './serve-extension.ts'

/** Returns the certificate that the server presents. */
function certificateAt(url: string): Promise<X509Certificate> {
  const { hostname: host, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(new X509Certificate(socket.getPeerCertificate().raw))
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

test('renews the serving certificate before it expires, without a new certificate authority', async () => {
  const clock = new VirtualClock()
  const trusted: string[] = []
  const server = await serveExtension(() => Promise.resolve(new Response('ok')), {
    port: 0,
    clock,
    trust: async (bundle) => void trusted.push(bundle),
  })
  try {
    const first = await certificateAt(server.url)
    expect(first.checkIP('127.0.0.1')).toBe('127.0.0.1')
    clock.step(Date.parse(first.validTo))
    // The certificate is renewed asynchronously.
    const second = await vi.waitFor(async () => {
      const served = await certificateAt(server.url)
      expect(served.serialNumber).not.toBe(first.serialNumber)
      return served
    })
    expect(clock.now()).toBeLessThan(Date.parse(first.validTo))
    expect(Date.parse(second.validTo)).toBeGreaterThan(Date.parse(first.validTo))
    const [authority, ...renewedAuthorities] = trusted
    expect(renewedAuthorities).toEqual([])
    for (const certificate of [first, second]) expect(certificate.verify(new X509Certificate(authority!).publicKey)).toBe(true)
  } finally {
    await server.close(0)
  }
  expect(clock.nextDue).toBeUndefined()
})
