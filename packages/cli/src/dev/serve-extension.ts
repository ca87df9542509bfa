/** Serves a handler over TLS on loopback, with a generated certificate that is renewed while the server runs. */
import { type FetchHandler, keepOwnCertificate, listen, type Listening } from '@capstan/extension'
import { type Clock, silent } from '@capstan/kube'
import type { CertifiedKey } from '@capstan/kube/node'
import { host } from '../serve-management-cluster.ts'

/** Default port of upstream's extension server. */
const UsualPort = 9443

export interface ServingOptions {
  /** Port requested by the user. Default: 9443. 0 selects a free port. */
  readonly port: number | undefined
  readonly clock: Clock
  /** Publishes the CA bundle (PEM). The CA exists only as long as this process. */
  trust(bundle: string): Promise<void>
}

/** Serves `handle` on loopback. @throws Error that names the port when it is in use */
export async function serveExtension(
  handle: FetchHandler,
  { port = UsualPort, clock, trust }: ServingOptions,
): Promise<Pick<Listening, 'url' | 'close'>> {
  let listening: Listening | undefined
  const begin = (certified: CertifiedKey) => listen(handle, { host, port, ...certified }).catch(explainUsedPort(port))
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

/** Returns an error handler: it throws an error that names a remedy if the port is in use, and rethrows every other error. */
const explainUsedPort =
  (port: number) =>
  (err: NodeJS.ErrnoException): never => {
    if (err.code !== 'EADDRINUSE') throw err
    throw new Error(
      `Cannot listen on ${host}:${port}: the port is in use by another process. Choose another with --extension-port, or any free one with --extension-port 0`,
    )
  }
