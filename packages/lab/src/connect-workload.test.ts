import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Namespace, systemClock, systemRandom } from '@capstan/kube'
import { type CertifiedKey, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { connectWorkload } from './connect-workload.ts'

/** A server that responds to every request with a Pod or a Namespace, depending on the path, and records the paths. */
interface Endpoint {
  readonly url: string
  readonly authority: CertifiedKey
  readonly paths: string[]
}

const servers: Server[] = []
/** Server in the kubeconfig of the workload cluster. */
let outside: Endpoint
/** API server of the cluster in which this process runs, at its in-cluster address. */
let inside: Endpoint

async function startServer(): Promise<Endpoint> {
  const authority = await makeAuthority(systemClock, { commonName: 'test' })
  const { certificate, key } = await issueCertificate(authority, systemClock, {
    commonName: 'server',
    usages: ['server'],
    ipAddresses: ['127.0.0.1'],
  })
  const paths: string[] = []
  const server = createServer({ cert: certificate, key }, (request, response) => {
    paths.push(request.url!.split('?')[0]!)
    const isPod = request.url!.includes('/pods/')
    const kind = isPod ? 'Pod' : 'Namespace'
    const object = { apiVersion: 'v1', kind, metadata: { name: 'x', uid: 'own-uid' } }
    response.setHeader('content-type', 'application/json').end(JSON.stringify(object))
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, authority, paths }
}

beforeEach(async () => {
  outside = await startServer()
  inside = await startServer()
})
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

/** Connects with the kubeconfig, as a process whose Pod has this uid, and reads a Namespace. */
async function readAsPod(uid: string): Promise<void> {
  const data = Buffer.from(outside.authority.certificate).toString('base64')
  const kubeconfig = stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
    clusters: [{ name: 'c', cluster: { server: outside.url, 'certificate-authority-data': data } }],
    users: [{ name: 'c', user: { token: 't' } }],
  })
  const ownPod = { namespace: 'capi-system', name: 'manager', uid, server: inside.url, ca: inside.authority.certificate }
  const options = { clock: systemClock, random: systemRandom, endpoint: { host: '127.0.0.1', port: 1 }, ownPod }
  const connect = connectWorkload({ whenStarted: () => Promise.reject(new Error('not simulated')) }, options)
  const client = await connect(kubeconfig)
  await client.get(Namespace, { name: 'x' })
  client.transport.close()
}

const podPath = '/api/v1/namespaces/capi-system/pods/manager'

test('the cluster in which this process runs is accessed at its in-cluster address, with its in-cluster certificate authority', async () => {
  await readAsPod('own-uid')
  expect([outside.paths, inside.paths]).toEqual([[podPath], ['/api/v1/namespaces/x']])
})

test('a cluster with another Pod of the same name is accessed with its kubeconfig', async () => {
  await readAsPod('other-uid')
  expect([outside.paths, inside.paths]).toEqual([[podPath, '/api/v1/namespaces/x'], []])
})
