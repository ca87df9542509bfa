import { hours, VirtualClock } from '@capstan/kube'
import { type CertifiedKey, formatKubeconfig, issueCertificate, kubeconfigFor, makeAuthority } from '@capstan/kube/node'
import { beforeAll, describe, expect, test } from 'vitest'
import { needsRenewal } from './kubeconfig.ts'

const days = (n: number) => hours(24 * n)
const start = Date.UTC(2026, 0, 1)
let kubeconfig: string
let authority: CertifiedKey
beforeAll(async () => {
  const clock = new VirtualClock(start)
  authority = await makeAuthority(clock, { commonName: 'kubernetes' })
  const client = await issueCertificate(authority, clock, {
    commonName: 'kubernetes-admin',
    usages: ['client'],
    validity: days(365),
  })
  const access = { server: 'https://127.0.0.1:6443', ca: authority.certificate, certificate: client.certificate, key: client.key }
  kubeconfig = formatKubeconfig(kubeconfigFor('demo', access))
})

describe('a kubeconfig', () => {
  test.each([
    ['that is new is kept', 0, false],
    ['that has more than half its validity left is kept', 182, false],
    ['that has less than half its validity left is renewed', 183, true],
    ['that has expired is renewed', 400, true],
    ['that is not valid yet is renewed', -2, true],
  ])('%s', (_, age, expected) => {
    expect(needsRenewal(kubeconfig, authority, new VirtualClock(start + days(age)))).toBe(expected)
  })

  test.each([
    ['that its Secret lacks', undefined],
    ['that has no client certificate', 'apiVersion: v1\nkind: Config\n'],
    ['whose client certificate is invalid', 'client-certificate-data: bm90IGEgY2VydGlmaWNhdGU=\n'],
  ])('%s is renewed', (_, userFields) => {
    const trust = `certificate-authority-data: ${btoa(authority.certificate)}\n`
    const text = userFields === undefined ? undefined : `${trust}${userFields}`
    expect(needsRenewal(text, authority, new VirtualClock(start))).toBe(true)
  })

  test('of another certificate authority is renewed', async () => {
    const clock = new VirtualClock(start)
    const newAuthority = await makeAuthority(clock, { commonName: 'kubernetes' })
    expect(needsRenewal(kubeconfig, newAuthority, clock)).toBe(true)
  })
})
