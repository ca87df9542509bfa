import { type Client, unknownKind } from '@capstan/kube'
import { expect, test } from 'vitest'
import { rejection, testServer } from './test-server.ts'

const key = { namespace: 'default', name: 'kubernetes' }
const services = unknownKind({ apiVersion: 'v1', kind: 'Service', plural: 'services' })
const endpoints = unknownKind({ apiVersion: 'v1', kind: 'Endpoints', plural: 'endpoints' })
const slices = unknownKind({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', plural: 'endpointslices' })

const published = async (client: Client) => ({
  service: await client.get(services, key),
  endpoints: await client.get(endpoints, key),
  slice: await client.get(slices, key),
})

test('the server is published as the endpoint of the Service `kubernetes`, whose cluster IP is the first address of the range', async () => {
  const { server, client } = await testServer({ serviceClusterIPRange: '10.96.0.0/16' })
  await server.advertise({ address: '192.0.2.7', port: 6443 })
  const ports = [{ name: 'https', port: 6443, protocol: 'TCP' }]
  expect(await published(client)).toMatchObject({
    service: {
      metadata: { labels: { component: 'apiserver', provider: 'kubernetes' } },
      spec: { clusterIP: '10.96.0.1', type: 'ClusterIP', ports: [{ name: 'https', port: 443, targetPort: 6443 }] },
    },
    endpoints: { subsets: [{ addresses: [{ ip: '192.0.2.7' }], ports }] },
    slice: { addressType: 'IPv4', endpoints: [{ addresses: ['192.0.2.7'], conditions: { ready: true } }], ports },
  })
})

test('advertising another address corrects the objects, and advertising the same address again writes nothing', async () => {
  const { server, client } = await testServer()
  await server.advertise({ address: '192.0.2.7', port: 6443 })
  await client.patch(services, key, { type: 'merge', body: { metadata: { labels: { mine: 'yes' } } } })
  await server.advertise({ address: '192.0.2.8', port: 7443 })
  const moved = await published(client)
  expect(moved).toMatchObject({
    service: { metadata: { labels: { mine: 'yes' } }, spec: { ports: [{ targetPort: 7443 }] } },
    endpoints: { subsets: [{ addresses: [{ ip: '192.0.2.8' }], ports: [{ port: 7443 }] }] },
    slice: { endpoints: [{ addresses: ['192.0.2.8'] }], ports: [{ port: 7443 }] },
  })
  await server.advertise({ address: '192.0.2.8', port: 7443 })
  expect(await published(client)).toEqual(moved)
})

test('an address that pods cannot reach is not published as an endpoint; the Service is created', async () => {
  const { server, client } = await testServer()
  await server.advertise({ address: '127.0.0.1', port: 6443 })
  expect(await rejection(client.get(services, key))).toBe('accepted')
  expect(await rejection(client.get(endpoints, key))).toMatch(/^404/)
})
