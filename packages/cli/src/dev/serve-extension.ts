/** A TLS server on loopback, with a certificate that nobody had to make, and that is renewed while it runs. */
import { type FetchHandler, keepOwnCertificate, listen, type Listening } from '@capstan/extension'
import { type Clock, silent } from '@capstan/kube'
import type { CertifiedKey } from '@capstan/kube/node'
import { host } from '../serve-plane.ts'

/** What upstream's server listens on. */
const UsualPort = 9443

export interface ServingOptions {
  /** Asked for by the user; absent: the usual one, or any that is free. */
  readonly port: number | undefined
  readonly clock: Clock
  /** Makes everybody trust these authorities, PEM. They end with the process. */
  trust(bundle: string): Promise<void>
}

/** @throws Error naming the port that was asked for when it is taken; the usual one is given up for any other */
export async function serveExtension(
  handle: FetchHandler,
  { port, clock, trust }: ServingOptions,
): Promise<Pick<Listening, 'url' | 'close'>> {
  let listening: Listening | undefined
  const begin = (certified: CertifiedKey) => {
    const on = (port: number) => listen(handle, { host, port, ...certified })
    return port === undefined ? on(UsualPort).catch(() => on(0)) : on(port).catch(inUse(port))
  }
  const certificate = await keepOwnCertificate({
    commonName: 'capstan-dev-extension',
    ipAddresses: [host],
    dnsNames: ['localhost'],
    clock,
    log: silent,
    trust,
    async serve(certified) {
      if (listening) listening.renew(certified)
      else listening = await begin(certified)
    },
  })
  const { url, close } = listening!
  return {
    url,
    close(grace) {
      certificate.close()
      return close(grace)
    },
  }
}

const inUse =
  (port: number) =>
  (err: NodeJS.ErrnoException): never => {
    if (err.code !== 'EADDRINUSE') throw err
    throw new Error(`Cannot listen on ${host}:${port}: the port is in use by another process`)
  }
