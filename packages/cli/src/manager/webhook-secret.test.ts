import { hours, Namespace, Secret, silent } from '@capstan/kube'
import { X509Certificate } from 'node:crypto'
import { testEnv, type TestEnv } from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'
import { keepSharedCertificate } from './webhook-secret.ts'

const secret = { namespace: 'capi-system', name: 'capi-webhook-service-cert' }
const closing: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function environment(): Promise<TestEnv> {
  const env = await testEnv({ kinds: [] })
  closing.push(() => env.close())
  await env.client.create(Namespace, { metadata: { name: secret.namespace } })
  return env
}

/**
 * Starts serving the shared certificate as one manager does. Returns the events: `trusts` with the number of published authorities, and
 * `serves` with the serial number of the certificate.
 */
async function startManager(
  env: TestEnv,
  leads: boolean,
  names: { dnsNames: string[]; ipAddresses?: string[] } = { dnsNames: ['capi-webhook-service.capi-system.svc'] },
) {
  const events: string[] = []
  const sharedCertificate = await keepSharedCertificate({
    client: env.client,
    secret,
    ...names,
    clock: env.clock,
    log: silent,
    mayRenew: () => leads,
    trust: (authorities) => Promise.resolve(void events.push(`trusts ${authorities.match(/BEGIN/g)!.length}`)),
    serve: ({ certificate }) => void events.push(`serves ${new X509Certificate(certificate).serialNumber}`),
  })
  closing.push(() => sharedCertificate.close())
  return events
}

test('managers that start at the same time serve the same certificate, and publish its authority first', async () => {
  const env = await environment()
  const [first, second] = await Promise.all([startManager(env, true), startManager(env, false)])
  expect(first).toEqual(['trusts 1', expect.stringMatching(/^serves /)])
  expect(second).toEqual(first)
  const { type, data } = await env.client.get(Secret, secret)
  expect({ type, keys: Object.keys(data!).sort() }).toEqual({ type: 'kubernetes.io/tls', keys: ['ca.crt', 'tls.crt', 'tls.key'] })
  const certificate = new X509Certificate(Buffer.from(data!['tls.crt']!, 'base64'))
  expect(certificate.subjectAltName).toBe('DNS:capi-webhook-service.capi-system.svc')
  expect(certificate.checkIssued(new X509Certificate(Buffer.from(data!['ca.crt']!, 'base64')))).toBe(true)
})

test('the certificate contains the IP address of the manager', async () => {
  const env = await environment()
  await startManager(env, true, { dnsNames: [], ipAddresses: ['127.0.0.1'] })
  const { data } = await env.client.get(Secret, secret)
  const certificate = new X509Certificate(Buffer.from(data!['tls.crt']!, 'base64'))
  expect(certificate.subjectAltName).toBe('IP Address:127.0.0.1')
})

test('a manager at another address replaces the certificate, and keeps the previous authority', async () => {
  const env = await environment()
  await startManager(env, true, { dnsNames: [], ipAddresses: ['127.0.0.1'] })
  const events = await startManager(env, false, { dnsNames: ['manager.example.com'], ipAddresses: ['10.0.0.1'] })
  expect(events).toEqual(['trusts 2', expect.stringMatching(/^serves /)])
  const { data } = await env.client.get(Secret, secret)
  const certificate = new X509Certificate(Buffer.from(data!['tls.crt']!, 'base64'))
  expect(certificate.subjectAltName).toBe('DNS:manager.example.com, IP Address:10.0.0.1')
})

test('the leader renews the certificate after two thirds of its validity, and keeps the previous authority; other managers use the new certificate', async () => {
  const env = await environment()
  const leader = await startManager(env, true)
  const other = await startManager(env, false)
  await env.advance(hours(24 * 59))
  expect(leader).toHaveLength(2)
  await env.advance(hours(24 * 2))
  expect(leader.slice(2)).toEqual(['trusts 2', expect.stringMatching(/^serves /)])
  expect(leader[3]).not.toBe(leader[1])
  expect(other).toEqual(leader)
})

test('managers that do not lead never renew a valid certificate, but create a missing certificate', async () => {
  const env = await environment()
  const events = await startManager(env, false)
  await env.advance(hours(24 * 89))
  expect(events).toHaveLength(2)
  await env.client.delete(Secret, secret)
  await env.advance(hours(2))
  expect(events).toHaveLength(4)
})
