/**
 * Serving certificates in a Secret that the managers of one Lease share: the first one creates it, the leader renews the certificate, and
 * all read it. Used where cert-manager is not installed.
 */
import { type Client, type Clock, isReason, type Logger, messageOf, hours, type ObjectKey, orAbsent, Secret } from '@capstan/kube'
import { certificateExpiry, issueCertificate, makeAuthority } from '@capstan/kube/node'
import type { ServingCertificate } from '@capstan/extension'

export interface SharedCertificateOptions {
  readonly client: Client
  readonly secret: ObjectKey & { readonly namespace: string }
  /** Names and addresses under which API servers call; at least one. */
  readonly dnsNames: readonly string[]
  readonly ipAddresses?: readonly string[]
  readonly clock: Clock
  readonly log: Logger
  /** Only one manager renews: the leader. */
  mayRenew(): boolean
  /** Publishes the CA bundle (PEM, newest first) to API servers. */
  trust(authorities: string): Promise<void>
  serve(serving: ServingCertificate): Promise<void> | void
}

/** Interval in which each manager reads the Secret. */
const Interval = hours(1)

interface SharedCertificate {
  readonly authorities: string
  readonly certificate: string
  readonly key: string
  readonly resourceVersion: string
}

/** Resolves when a trusted certificate is served. @throws the error of the first attempt */
export async function keepSharedCertificate(options: SharedCertificateOptions): Promise<{ close(): void }> {
  const { clock, log, secret } = options
  let served: string | undefined
  let timer: { cancel(): void } | undefined
  let closed = false
  const step = async (): Promise<void> => {
    const current = await currentCertificate(options)
    if (current.certificate === served) return
    // The authority is published before the certificate is served: API servers reject certificates of unknown authorities.
    await options.trust(current.authorities)
    await options.serve({ certificate: current.certificate, key: current.key })
    served = current.certificate
  }
  const again = (): void => {
    if (closed) return
    timer = clock.schedule(Interval, () => {
      step()
        .catch((err: unknown) =>
          log.warn('Cannot renew the certificate of webhooks, trying again', {
            secret: `${secret.namespace}/${secret.name}`,
            reason: messageOf(err),
          }),
        )
        .finally(again)
    })
  }
  await step()
  again()
  return {
    close() {
      closed = true
      timer?.cancel()
    },
  }
}

/** Returns the content of the Secret, created or renewed when due. Of two concurrent writes the first one wins. */
async function currentCertificate(options: SharedCertificateOptions): Promise<SharedCertificate> {
  const { client, secret, clock } = options
  const existingSecret = await orAbsent(client.get(Secret, secret))
  const current = existingSecret && certificateIn(existingSecret)
  const expiry = current && certificateExpiry(current.certificate)
  const isUsable = expiry !== undefined && expiry > clock.now()
  if (isUsable && !(options.mayRenew() && clock.now() > expiry - renewBefore)) return current!
  const createdData = await newData(options, current)
  const type = 'kubernetes.io/tls'
  try {
    const written = existingSecret
      ? await client.patch(Secret, secret, {
          type: 'merge',
          body: { metadata: { resourceVersion: existingSecret.metadata.resourceVersion }, data: createdData },
        })
      : await client.create(Secret, { metadata: { ...secret }, type, data: createdData })
    return certificateIn(written)!
  } catch (err) {
    if (!isReason(err, 'AlreadyExists') && !isReason(err, 'Conflict')) throw err
    const other = certificateIn(await client.get(Secret, secret))
    if (!other) throw err
    return other
  }
}

/** Certificates live for 90 days, and are renewed after 60. */
const validity = hours(24 * 90)
const renewBefore = validity / 3

/** Issues a certificate with a new authority, whose key is discarded. The previous authority stays trusted: other managers still use it. */
async function newData(
  { clock, secret, dnsNames, ipAddresses = [] }: SharedCertificateOptions,
  before: SharedCertificate | undefined,
) {
  const authority = await makeAuthority(clock, { commonName: secret.name, validity: validity * 2 })
  const { certificate, key } = await issueCertificate(authority, clock, {
    commonName: [...dnsNames, ...ipAddresses][0]!,
    usages: ['server'],
    dnsNames,
    ipAddresses,
    validity,
  })
  const [previous = ''] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(before?.authorities ?? '') ?? []
  const encode = (text: string) => Buffer.from(text).toString('base64')
  return {
    'ca.crt': encode(`${authority.certificate.trimEnd()}\n${previous}`),
    'tls.crt': encode(certificate),
    'tls.key': encode(key),
  }
}

function certificateIn({ data, metadata }: Secret): SharedCertificate | undefined {
  const read = (name: string) => Buffer.from(data?.[name] ?? '', 'base64').toString()
  const [authorities, certificate, key] = [read('ca.crt'), read('tls.crt'), read('tls.key')]
  if (!authorities || !certificate || !key) return undefined
  try {
    certificateExpiry(certificate)
  } catch {
    // Another client has overwritten the certificate: a new one is generated.
    return undefined
  }
  return { authorities, certificate, key, resourceVersion: metadata.resourceVersion }
}
