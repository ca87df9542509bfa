/** Tests many API servers in one process: their shared port, and their isolation from one another. */
import { request } from 'node:https'
import { type Listener, listen, memoryStore } from '@capstan/apiserver'
import { ConfigMap, ServiceAccount, seededRandom, silent, systemClock, VirtualClock } from '@capstan/kube'
import { type CertifiedKey, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serverNameOf } from './server-name.ts'
import { createWorkloads } from './workloads.ts'

const count = 25
const clock = new VirtualClock(systemClock.now())
const workloads = createWorkloads({
  openStore: () => Promise.resolve(memoryStore()),
  clock,
  random: seededRandom(1),
  log: silent,
})
const clusters: { key: { namespace: string; name: string }; authority: CertifiedKey; admin: CertifiedKey }[] = []
let listener: Listener

beforeAll(async () => {
  listener = await listen({
    port: 0,
    endpointFor: (name) => (name === undefined ? undefined : workloads.endpointFor(name)),
    clock,
  })
  for (let index = 0; index < count; index++) {
    const key = { namespace: 'default', name: `c-${index}` }
    const authority = await makeAuthority(clock, { commonName: 'kubernetes' })
    const admin = await issueCertificate(authority, clock, {
      commonName: 'kubernetes-admin',
      organizations: ['system:masters'],
      usages: ['client'],
    })
    await workloads.join(key, 'm', { authority, endpointHost: '127.0.0.1', kubernetesVersion: 'v1.36.0' })
    clusters.push({ key, authority, admin })
  }
})
afterAll(async () => {
  await listener.close(0)
  await workloads.close()
})

interface RequestOptions {
  /** Index of the cluster whose API server gets the request. */
  readonly cluster: number
  /** Index of the cluster whose client certificate is used; default: no certificate. */
  readonly as?: number
  readonly token?: string
  /** Index of the cluster whose certificate authority the client trusts; default: `cluster`. */
  readonly trusts?: number
  readonly headers?: object
}

const send = (path: string, { cluster, as, token, trusts = cluster, headers = {} }: RequestOptions) =>
  new Promise<{ code: number | undefined; text: string }>((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port: listener.port,
      path,
      servername: serverNameOf(clusters[cluster]!.key),
      ca: clusters[trusts]!.authority.certificate,
      ...(as === undefined ? {} : { cert: clusters[as]!.admin.certificate, key: clusters[as]!.admin.key }),
      headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
      agent: false,
    }
    const sent = request(options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve({ code: response.statusCode, text }))
    })
    sent.on('error', reject).end()
  })

const path = '/api/v1/namespaces/default/configmaps/mine'

test('all API servers share one port, and each has its own objects', async () => {
  await Promise.all(
    clusters.map(({ key }) =>
      workloads.clientFor(key)!.create(ConfigMap, { metadata: { namespace: 'default', name: 'mine' }, data: { of: key.name } }),
    ),
  )
  const responses = await Promise.all(clusters.map((_, cluster) => send(path, { cluster, as: cluster })))
  expect(responses.map(({ code, text }) => [code, (JSON.parse(text) as ConfigMap).data?.of])).toEqual(
    clusters.map(({ key }) => [200, key.name]),
  )
})

test('a cluster rejects credentials of another cluster and requests without credentials, and has its own certificate authority', async () => {
  const [first, second] = [workloads.clientFor(clusters[0]!.key)!, workloads.clientFor(clusters[1]!.key)!]
  const account = { namespace: 'default', name: 'robot' }
  await Promise.all([first, second].map((client) => client.create(ServiceAccount, { metadata: account })))
  const response = await send(path, { cluster: 0, as: 0 })
  expect(response.code).toBe(200)
  const tokenRequest = {
    verb: 'create',
    group: '',
    version: 'v1',
    plural: 'serviceaccounts',
    ...account,
    subresource: 'token',
  } as const
  const body = { kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1', spec: {} }
  const transport = workloads.transportFor(serverNameOf(clusters[0]!.key))!
  const { status } = (await transport.send({ ...tokenRequest, body })) as unknown as { status: { token: string } }
  const { token } = status
  const rejected = await Promise.all([
    send(path, { cluster: 1, as: 0 }),
    send(path, { cluster: 1, token }),
    send(path, { cluster: 1 }),
    // The TLS server name, not the Host header, selects the API server.
    send(path, { cluster: 1, as: 0, headers: { host: serverNameOf(clusters[0]!.key) } }),
  ])
  expect(rejected.map(({ code }) => code)).toEqual([401, 401, 401, 401])
  expect((await send(path, { cluster: 0, token })).code).toBe(200)
  await expect(send(path, { cluster: 1, as: 1, trusts: 0 })).rejects.toThrow()
})

test('idle API servers have no timers', () => {
  expect(clock.nextDue).toBeUndefined()
})

test('a connection to a stopped API server fails, and another API server continues', async () => {
  const last = count - 1
  expect((await send(path, { cluster: last, as: last })).code).toBe(200)
  await workloads.leave(clusters[last]!.key, 'm')
  await expect(send(path, { cluster: last, as: last })).rejects.toThrow()
  expect((await send(path, { cluster: last - 1, as: last - 1 })).code).toBe(200)
})
