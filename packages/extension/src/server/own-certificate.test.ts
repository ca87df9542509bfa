import { X509Certificate } from 'node:crypto'
import { hours, silent, VirtualClock } from '@capstan/kube'
import { type CertifiedKey, makeAuthority } from '@capstan/kube/node'
import { beforeEach, describe, expect, it } from 'vitest'
import { keepOwnCertificate, type OwnCertificateOptions } from './own-certificate.ts'

const day = hours(24)

let clock: VirtualClock
let trusted: X509Certificate[]
let served: X509Certificate | undefined
let storedAuthorities: CertifiedKey[]
let events: string[]
beforeEach(() => {
  clock = new VirtualClock()
  trusted = []
  served = undefined
  storedAuthorities = []
  events = []
})

const record = (event: string) => events.push(`day ${((clock.now() - Date.UTC(2026, 0, 1)) / day).toFixed(2)}: ${event}`)
const keep = (overrides: Partial<OwnCertificateOptions> = {}) =>
  keepOwnCertificate({
    commonName: 'x',
    ipAddresses: ['127.0.0.1'],
    clock,
    log: silent,
    validity: { authority: 90 * day, serving: 20 * day },
    async trust(bundle) {
      trusted = bundle
        .split(/(?<=-----END CERTIFICATE-----\n)/)
        .filter(Boolean)
        .map((pem) => new X509Certificate(pem))
      record(`trusted authorities: ${trusted.length}`)
    },
    serve({ certificate }) {
      served = new X509Certificate(certificate)
      record('new certificate served')
    },
    keep: (authority) => storedAuthorities.push(authority),
    ...overrides,
  })

const isValidAndTrusted = () => {
  const now = clock.now()
  const valid = ({ validFrom, validTo }: X509Certificate) => Date.parse(validFrom) <= now && now < Date.parse(validTo)
  return (
    served !== undefined &&
    valid(served) &&
    trusted.some((authority) => valid(authority) && served!.checkIssued(authority) && served!.verify(authority.publicKey))
  )
}
const settle = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve()
}
/** Advances the clock from timer to timer. After each timer the served certificate must be valid and trusted. */
const advance = async (ms: number) => {
  const end = clock.now() + ms
  while (clock.step(end)) {
    await settle()
    expect([clock.now(), isValidAndTrusted()]).toEqual([clock.now(), true])
  }
}

describe('a generated certificate', () => {
  it('is renewed before it expires; a new authority is trusted before it signs, and the old authority is removed after its last use', async () => {
    const own = await keep()
    await advance(80 * day)
    expect(events).toEqual([
      'day 0.00: trusted authorities: 1',
      'day 0.00: new certificate served',
      'day 13.33: new certificate served',
      'day 26.67: new certificate served',
      'day 40.00: new certificate served',
      'day 53.33: new certificate served',
      'day 59.67: trusted authorities: 2',
      'day 59.67: new certificate served',
      'day 59.68: trusted authorities: 1',
      'day 73.01: new certificate served',
    ])
    own.close()
    expect(clock.nextDue).toBeUndefined()
  })

  it('is valid and trusted after every timer of ten years, with 62 authorities in all', async () => {
    const own = await keep()
    await advance(3650 * day)
    expect(storedAuthorities.length).toBe(62)
    own.close()
  })

  it('is signed by the stored authority, unless the authority has expired', async () => {
    const authority = await makeAuthority(clock, { commonName: 'kept', validity: 90 * day })
    const own = await keep({ authority })
    expect(storedAuthorities).toEqual([])
    expect(served!.verify(new X509Certificate(authority.certificate).publicKey)).toBe(true)
    own.close()
    clock.step(clock.now() + 100 * day)
    const later = await keep({ authority })
    expect(storedAuthorities).toHaveLength(1)
    expect(isValidAndTrusted()).toBe(true)
    later.close()
  })

  it('is signed by a new authority if the stored authority is not valid yet', async () => {
    const authority = await makeAuthority(clock, { commonName: 'kept', validity: 90 * day })
    clock.shift(-10 * day)
    const own = await keep({ authority })
    expect(storedAuthorities).toHaveLength(1)
    expect(isValidAndTrusted()).toBe(true)
    own.close()
  })

  it('is signed by the new authority if the previous one expired before the new one could be published', async () => {
    let fails = false
    const issued: number[] = []
    const own = await keep({
      async trust() {
        if (fails) throw new Error('not now')
      },
      serve({ certificate }) {
        served = new X509Certificate(certificate)
        issued.push(clock.now())
      },
    })
    fails = true
    while (storedAuthorities.length === 1) {
      clock.step(clock.nextDue!)
      await settle()
    }
    clock.shift(35 * day)
    fails = false
    const count = issued.length
    clock.step(clock.nextDue!)
    await settle()
    expect(served!.verify(new X509Certificate(storedAuthorities[1]!.certificate).publicKey)).toBe(true)
    expect(issued).toHaveLength(count + 1)
    expect(clock.nextDue! - clock.now()).toBeGreaterThan(day)
    own.close()
  })

  it('stays valid and trusted when every second call that publishes a CA bundle or serves a certificate fails', async () => {
    const failures = new Set<number>()
    let calls = 0
    const failSometimes = () => {
      if (failures.has(calls++)) throw new Error('not now')
    }
    const trust = async (bundle: string) => {
      failSometimes()
      trusted = bundle
        .split(/(?<=-----END CERTIFICATE-----\n)/)
        .filter(Boolean)
        .map((pem) => new X509Certificate(pem))
    }
    const serve = ({ certificate }: CertifiedKey) => {
      failSometimes()
      served = new X509Certificate(certificate)
    }
    const own = await keep({ trust, serve })
    for (let call = 2; call < 200; call += 2) failures.add(call)
    await advance(200 * day)
    expect(calls).toBeGreaterThan(20)
    own.close()
  })

  it('makes the start fail if its CA bundle cannot be published, and leaves no timer', async () => {
    await expect(keep({ trust: () => Promise.reject(new Error('cannot publish')) })).rejects.toThrow('cannot publish')
    expect(clock.nextDue).toBeUndefined()
  })
})
