/** Reads certificates from files, and again when the files change, so that a renewed certificate is used without a restart. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { type Clock, type Logger, systemClock } from '@capstan/kube'
import { invalidNow } from '@capstan/kube/node'
import type { ClientCertificate, HttpsHookTransport } from '../client/https-transport.ts'
import type { ServingCertificate } from './listen.ts'
import { type WatchedFiles, watchFiles } from './watch-files.ts'

export interface ServingFiles {
  readonly certificate: string
  readonly key: string
  /** File with the certificate authorities of clients. Only clients with a certificate of one of these authorities may call. */
  readonly clientCA?: string | undefined
}

/**
 * Passes the contents of the files to `use`, now and after each change. Contents are not passed if a file cannot be read, the first
 * certificate of a file or the key cannot be parsed, or the key does not match: after a change, logs the error, and the earlier contents
 * stay in use.
 *
 * @throws Error if the contents are not passed now
 */
export function servingCertificateFrom(
  files: ServingFiles,
  use: (serving: ServingCertificate) => void,
  log: Logger,
  clock: Clock = systemClock,
): Promise<WatchedFiles> {
  const { clientCA } = files
  const paths = [files.certificate, files.key, ...(clientCA === undefined ? [] : [clientCA])]
  return watchFiles(
    paths,
    ([certificate = '', key = '', ca]) => {
      assertPair(certificate, key, files)
      if (ca !== undefined) firstCertificate(ca, clientCA!)
      warnIfInvalid(certificate, files.certificate, log, clock)
      use({ certificate, key, ...(ca === undefined ? {} : { clientCA: ca }) })
    },
    log,
  )
}

export interface ClientFiles {
  readonly certificate: string
  readonly key: string
}

/**
 * Passes the contents of the files to the transport as its client certificate, now and after each change. Contents are not passed for the same
 * reasons as in `servingCertificateFrom`: after a change, logs the error, and the earlier certificate stays in use.
 *
 * @throws Error if the contents are not passed now
 */
export function presentFrom(
  files: ClientFiles,
  transport: Pick<HttpsHookTransport, 'present'>,
  log: Logger,
  clock: Clock = systemClock,
): Promise<WatchedFiles> {
  const use = ([certificate = '', key = '']: readonly string[]) => {
    assertPair(certificate, key, files)
    warnIfInvalid(certificate, files.certificate, log, clock)
    transport.present({ certificate, key } satisfies ClientCertificate)
  }
  return watchFiles([files.certificate, files.key], use, log)
}

/** Logs a warning if the certificate has expired or is not yet valid. It is used nevertheless: the clock of this machine may be wrong. */
function warnIfInvalid(certificate: string, file: string, log: Logger, clock: Clock): void {
  const reason = invalidNow(certificate, clock.now())
  if (reason !== undefined) log.warn('A certificate is not valid now: peers will reject it', { file, reason })
}

/** @throws Error that names the files, without their content, if certificate and key do not match, or one of them is invalid */
function assertPair(certificate: string, key: string, files: ClientFiles): void {
  const leaf = firstCertificate(certificate, files.certificate)
  let fits: boolean
  try {
    fits = leaf.checkPrivateKey(createPrivateKey(key))
  } catch {
    throw new Error(`${files.key} contains no private key`)
  }
  if (!fits) throw new Error(`the key in ${files.key} does not belong to the certificate in ${files.certificate}`)
}

/** Returns the first certificate of a PEM text. @throws Error that names the file if the first certificate is missing or invalid */
function firstCertificate(text: string, file: string): X509Certificate {
  try {
    return new X509Certificate(text)
  } catch {
    throw new Error(`${file} contains no certificate`)
  }
}
