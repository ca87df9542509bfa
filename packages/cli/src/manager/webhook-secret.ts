/**
 * Keeps a serving certificate in a Secret that the managers of one Lease share. Every manager reads the Secret. A manager that finds no
 * usable certificate creates one: at the first start, or when the certificate is invalid, has expired, or lacks a name at which API
 * servers call this manager. With leader election, only the leader renews the certificate before it expires. Implements
 * --webhook-cert-secret, which the manifests for clusters without cert-manager use.
 */
import { type Client, type Clock, isReason, type Logger, messageOf, hours, type ObjectKey, orAbsent, Secret } from '@capstan/kube'
import { certificateExpiry, issueCertificate, isUsable, makeAuthority } from '@capstan/kube/node'
import type { ServingCertificate } from '@capstan/extension'

export interface SharedCertificateOptions {
  readonly client: Client
  readonly secret: ObjectKey & { readonly namespace: string }
  /** DNS names and IP addresses at which API servers call the webhooks; at least one. */
  readonly dnsNames: readonly string[]
  readonly ipAddresses?: readonly string[]
  readonly clock: Clock
  readonly log: Logger
  /** Whether this manager may renew the certificate before it expires: true for the leader, and without leader election. */
  mayRenew(): boolean
  /** Publishes the CA bundle (PEM, newest first) to API servers. */
  trust(authorities: string): Promise<void>
  serve(serving: ServingCertificate): Promise<void> | void
}

/** Interval at which each manager reads the Secret. */
const Interval = hours(1)

interface SharedCertificate {
  readonly authorities: string
  readonly certificate: string
  readonly key: string
}

/** Starts serving the shared certificate. Resolves when a trusted certificate is served. @throws the error of the first attempt */
export async function keepSharedCertificate(options: SharedCertificateOptions): Promise<{ close(): void }> {
  const { clock, log, secret } = options
  let served: string | undefined
  let timer: { cancel(): void } | undefined
  let closed = false
  const refresh = async (): Promise<void> => {
    const current = await currentCertificate(options)
    if (current.certificate === served) return
    // The authority is published before the certificate is served: API servers reject certificates of unknown authorities.
    await options.trust(current.authorities)
    await options.serve({ certificate: current.certificate, key: current.key })
    served = current.certificate
  }
  const scheduleRefresh = (): void => {
    if (closed) return
    timer = clock.schedule(Interval, () => {
      refresh()
        .catch((err: unknown) =>
          log.warn('Cannot refresh the certificate of webhooks, trying again in an hour', {
            secret: `${secret.namespace}/${secret.name}`,
            reason: messageOf(err),
          }),
        )
        .finally(scheduleRefresh)
    })
  }
  await refresh()
  scheduleRefresh()
  return {
    close() {
      closed = true
      timer?.cancel()
    },
  }
}

/**
 * Returns the content of the Secret; creates or renews the certificate when due. If two managers write at the same time, the first write
 * wins.
 */
async function currentCertificate(options: SharedCertificateOptions): Promise<SharedCertificate> {
  const { client, secret, clock, dnsNames, ipAddresses = [] } = options
  const existingSecret = await orAbsent(client.get(Secret, secret))
  const current = existingSecret && certificateIn(existingSecret)
  const margin = options.mayRenew() ? renewBefore : 0
  if (current && isUsable(current, clock.now(), margin, current.authorities, { dnsNames, ipAddresses })) return current
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
    const concurrentlyWritten = certificateIn(await client.get(Secret, secret))
    if (!concurrentlyWritten) throw err
    return concurrentlyWritten
  }
}

/** Certificates are valid for 90 days, and are renewed after 60 days. */
const validity = hours(24 * 90)
const renewBefore = validity / 3

/**
 * Issues a certificate with a new authority, whose key is discarded. Keeps the previous authority, because other managers still serve
 * certificates that it signed.
 */
async function newData(
  { clock, secret, dnsNames, ipAddresses = [] }: SharedCertificateOptions,
  previousCertificate: SharedCertificate | undefined,
) {
  const authority = await makeAuthority(clock, { commonName: secret.name, validity: validity * 2 })
  const { certificate, key } = await issueCertificate(authority, clock, {
    commonName: [...dnsNames, ...ipAddresses][0]!,
    usages: ['server'],
    dnsNames,
    ipAddresses,
    validity,
  })
  const [previousAuthority = ''] =
    /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(previousCertificate?.authorities ?? '') ?? []
  const encode = (text: string) => Buffer.from(text).toString('base64')
  return {
    'ca.crt': encode(`${authority.certificate.trimEnd()}\n${previousAuthority}`),
    'tls.crt': encode(certificate),
    'tls.key': encode(key),
  }
}

function certificateIn({ data }: Secret): SharedCertificate | undefined {
  const read = (name: string) => Buffer.from(data?.[name] ?? '', 'base64').toString()
  const [authorities, certificate, key] = [read('ca.crt'), read('tls.crt'), read('tls.key')]
  if (!authorities || !certificate || !key) return undefined
  try {
    certificateExpiry(certificate)
  } catch {
    // Another client has replaced the certificate by other text, so a new certificate is generated.
    return undefined
  }
  return { authorities, certificate, key }
}
