/**
 * Gets one object from each of many workload API servers, each over a separate TLS connection. Runs in a child
 * process, so that the measured memory of the servers does not include that of the clients.
 */
import { request } from 'node:https'
import type { CertifiedKey } from '@capstan/kube/node'
import { inParallel } from './figure.ts'

/** Message to this process: the API servers to read from, all on one port. */
export interface ReadRequest {
  readonly port: number
  readonly servers: readonly { readonly servername: string; readonly authority: string; readonly admin: CertifiedKey }[]
}

/** Response of this process: the duration of all reads together, or the error of the first failed read. */
export type Reply = { readonly seconds: number } | { readonly error: string }

process.on('message', ({ port, servers }: ReadRequest) => {
  inParallel(servers.length, 8, (index) => get(port, servers[index]!)).then(
    (seconds) => process.send?.({ seconds } satisfies Reply),
    (err: Error) => process.send?.({ error: err.message } satisfies Reply),
  )
})

function get(port: number, { servername, authority, admin }: ReadRequest['servers'][number]): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      path: '/api/v1/namespaces/default',
      servername,
      ca: authority,
      cert: admin.certificate,
      key: admin.key,
      agent: false,
    }
    const sent = request(options, (response) => {
      response.resume().on('end', () => {
        if (response.statusCode === 200) resolve()
        else reject(new Error(`${servername} answered ${response.statusCode}`))
      })
    })
    sent.on('error', reject).end()
  })
}
