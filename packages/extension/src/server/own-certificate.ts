/**
 * Generates certificates for servers that are not configured with any: an authority and a serving certificate, both renewed before they
 * expire. A new authority is published to clients before it signs certificates.
 */
import { X509Certificate } from 'node:crypto'
import type { Clock, Logger } from '@capstan/kube'
import { hours, messageOf, minutes } from '@capstan/kube'
import { type CertifiedKey, certificateExpiry, invalidNow, issueCertificate, makeAuthority } from '@capstan/kube/node'

export interface OwnCertificateOptions {
  readonly commonName: string
  readonly dnsNames?: readonly string[]
  readonly ipAddresses?: readonly string[]
  readonly clock: Clock
  readonly log: Logger
  /** Validity in milliseconds. Default: a year for the authority, a month for a serving certificate. */
  readonly validity?: { readonly authority: number; readonly serving: number }
  /** The authority that `keep` stored in an earlier process. */
  readonly authority?: CertifiedKey
  /** Publishes the CA bundle (PEM, newest first) to all clients. A failure is retried, except at the start. */
  trust(bundle: string): Promise<void>
  /** Uses a new serving certificate. */
  serve(certified: CertifiedKey): Promise<void> | void
  /** Stores an authority for the next start. */
  keep?(authority: CertifiedKey): void
}

export interface OwnCertificate {
  close(): void
}

const defaultValidity = { authority: hours(24 * 365), serving: hours(24 * 30) }
/** Time after which all clients are assumed to use a published bundle, and all servers a new certificate. */
const Spread = minutes(10)
const Retry = minutes(1)

/** Starts the rotation. Resolves when a trusted certificate is served. @throws the error of the first step, such as one of `trust` */
export async function keepOwnCertificate(options: OwnCertificateOptions): Promise<OwnCertificate> {
  const { clock, log, commonName } = options
  const rotation = new Rotation(options)
  let timer: { cancel(): void } | undefined
  let closed = false
  const schedule = (delay: number): void => {
    if (!closed) timer = clock.schedule(delay, again)
  }
  const again = (): void => {
    rotation.step().then(
      (next) => schedule(Math.max(next - clock.now(), 0)),
      (err: unknown) => {
        log.warn('Cannot renew a certificate, trying again', { name: commonName, reason: messageOf(err) })
        schedule(Retry)
      },
    )
  }
  schedule(Math.max((await rotation.step()) - clock.now(), 0))
  return {
    close() {
      closed = true
      timer?.cancel()
    },
  }
}

/** The current authority and serving certificate, which `step` renews. A failed `step` can be repeated. */
class Rotation {
  readonly #options: OwnCertificateOptions
  #authority: CertifiedKey | undefined
  /** The previous authority, while it is valid and certificates that it signed may be in use. */
  #previous: CertifiedKey | undefined
  /** The published CA bundle, and the time of its publication. */
  #trusted = { bundle: '', at: 0 }
  #serving: { readonly certified: CertifiedKey; readonly signer: CertifiedKey; readonly at: number } | undefined

  constructor(options: OwnCertificateOptions) {
    this.#options = options
    this.#authority = options.authority
  }

  /** Renews the certificates that are due, and publishes a changed CA bundle. Resolves with the time at which to call it again. */
  async step(): Promise<number> {
    const { clock, keep, serve } = this.#options
    const now = clock.now()
    const isValid = ({ certificate }: CertifiedKey) => invalidNow(certificate, now) === undefined
    if (!this.#authority || now >= renewalOf(this.#authority) || !isValid(this.#authority)) {
      if (this.#serving && isValid(this.#serving.signer)) this.#previous = this.#serving.signer
      this.#authority = await this.#newAuthority()
      keep?.(this.#authority)
    }
    if (this.#previous && !isValid(this.#previous)) this.#previous = undefined
    const authority = this.#authority
    await this.#trust(authority)
    const signsFrom = this.#previous ? this.#trusted.at + Spread : now
    const isDue =
      !this.#serving ||
      !isValid(this.#serving.certified) ||
      now >= renewalBetween(this.#serving.at, expiryOf(this.#serving.certified))
    const isToBeReplaced = this.#serving?.signer !== authority && now >= signsFrom
    if (isDue || isToBeReplaced) {
      const signer = now >= signsFrom ? authority : this.#previous!
      const certified = await this.#newCertificate(signer)
      await serve(certified)
      this.#serving = { certified, signer, at: now }
    }

    const { certified, signer, at: issuedAt } = this.#serving!
    const dropsFrom = issuedAt + Spread
    if (this.#previous && signer === authority && now >= dropsFrom) {
      this.#previous = undefined
      await this.#trust(authority)
    }
    let nextRotation = renewalOf(authority)
    if (this.#previous) nextRotation = signer === authority ? dropsFrom : signsFrom
    return Math.min(renewalBetween(issuedAt, expiryOf(certified)), nextRotation)
  }

  /** Publishes the CA bundle if it has changed. */
  async #trust(authority: CertifiedKey): Promise<void> {
    const bundle = `${authority.certificate}${this.#previous?.certificate ?? ''}`
    if (bundle === this.#trusted.bundle) return
    await this.#options.trust(bundle)
    this.#trusted = { bundle, at: this.#options.clock.now() }
  }

  #newAuthority(): Promise<CertifiedKey> {
    const { clock, commonName, validity = defaultValidity } = this.#options
    return makeAuthority(clock, { commonName, validity: validity.authority })
  }

  #newCertificate(signer: CertifiedKey): Promise<CertifiedKey> {
    const { clock, commonName, dnsNames = [], ipAddresses = [], validity = defaultValidity } = this.#options
    return issueCertificate(signer, clock, {
      commonName,
      usages: ['server'],
      dnsNames,
      ipAddresses,
      validity: validity.serving,
    })
  }
}

const expiryOf = ({ certificate }: CertifiedKey): number => certificateExpiry(certificate)

function renewalOf({ certificate }: CertifiedKey): number {
  const { validFrom, validTo } = new X509Certificate(certificate)
  return renewalBetween(Date.parse(validFrom), Date.parse(validTo))
}

/** Returns the time of renewal: after two thirds of the validity. */
const renewalBetween = (from: number, until: number): number => from + ((until - from) * 2) / 3
