/** A TLS server on loopback, with a certificate that nobody had to make. */
import type { FetchHandler, Listening } from '@capstan/extension'
import { listen } from '@capstan/extension'
import type { Clock } from '@capstan/kube'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'
import { host } from '../serve-plane.ts'

/** What upstream's server listens on. */
const UsualPort = 9443

export interface Serving {
  readonly listening: Listening
  /** Certificate of the authority that signed the server's, PEM. Both end with the process. */
  readonly authority: string
}

/** @throws Error naming the port that was asked for when it is taken; the usual one is given up for any other */
export async function serveExtension(handle: FetchHandler, port: number | undefined, clock: Clock): Promise<Serving> {
  const authority = await makeAuthority(clock, { commonName: 'capstan-dev' })
  const certified = await issueCertificate(authority, clock, {
    commonName: 'capstan-dev-extension',
    usages: ['server'],
    ipAddresses: [host],
    dnsNames: ['localhost'],
  })
  const on = (port: number) => listen(handle, { host, port, ...certified })
  const listening = port === undefined ? await on(UsualPort).catch(() => on(0)) : await on(port).catch(inUse(port))
  return { listening, authority: authority.certificate }
}

const inUse =
  (port: number) =>
  (err: NodeJS.ErrnoException): never => {
    if (err.code !== 'EADDRINUSE') throw err
    throw new Error(`Cannot listen on ${host}:${port}: the port is in use by another process`)
  }
