/** Connects controllers to the API server over TLS, with the client for real clusters. */
import type { Listener } from '@capstan/apiserver'
import type { ApiServer } from '@capstan/kubernetes-kinds'
import { authenticator, createHandler, listen } from '@capstan/apiserver'
import type { Transport } from '@capstan/kube'
import { seededRandom, systemClock } from '@capstan/kube'
import { httpsTransport, issueCertificate, makeAuthority } from '@capstan/kube/node'

export interface OverHttps {
  /** Serves the API server on a free port, and returns a transport to it. */
  reach(server: ApiServer): Promise<Transport>
  /** Closes all transports, and stops serving. */
  close(): Promise<void>
}

export function overHttps(): OverHttps {
  const open: { listener: Listener; transport: Transport }[] = []
  return {
    async reach(server) {
      const authority = await makeAuthority(systemClock, { commonName: 'test' })
      const serving = await issueCertificate(authority, systemClock, {
        commonName: 'kube-apiserver',
        usages: ['server'],
        ipAddresses: ['127.0.0.1'],
      })
      const client = await issueCertificate(authority, systemClock, {
        commonName: 'capstan',
        organizations: ['system:masters'],
        usages: ['client'],
      })
      const endpoint = {
        handler: createHandler({ engine: server.engine, clock: systemClock }),
        authenticate: authenticator(),
        serving,
        clientCA: authority.certificate,
      }
      const listener = await listen({ port: 0, endpointFor: () => endpoint, clock: systemClock })
      const access = { server: listener.url, ca: authority.certificate, certificate: client.certificate, key: client.key }
      // Timeouts of real sockets use the system clock, independent of the controllers' clock.
      const transport = httpsTransport(access, { clock: systemClock, random: seededRandom(1) })
      open.push({ listener, transport })
      return transport
    },
    async close() {
      for (const { listener, transport } of open) {
        transport.close()
        await listener.close(0)
      }
    },
  }
}
