import { unknownKind } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { rejection, testServer } from '../../test-server.ts'
import type { ServiceSpec } from '../schemas/types.ts'
import { firstAddress, parsePortRange, parseRange } from './addresses.ts'

const services = unknownKind({ apiVersion: 'v1', kind: 'Service', plural: 'services' })
const port = { port: 80 }
const aService = (name: string, spec: object = {}) =>
  ({ metadata: { name, namespace: 'default' }, spec: { ports: [port], selector: { a: 'b' }, ...spec } }) as never

async function cluster(serviceClusterIPRange = '10.0.0.0/24', serviceNodePortRange = '30000-30009') {
  const { client } = await testServer({ serviceClusterIPRange, serviceNodePortRange })
  return {
    client,
    create: async (name: string, spec?: object) =>
      (await client.create(services, aService(name, spec))) as unknown as { spec: ServiceSpec },
    rejected: (name: string, spec?: object) => rejection(client.create(services, aService(name, spec))),
    change: (name: string, spec: object) =>
      client.patch(services, { namespace: 'default', name }, { type: 'merge', body: { spec } }) as unknown as Promise<{
        spec: ServiceSpec
      }>,
    remove: (name: string) => client.delete(services, { namespace: 'default', name }),
  }
}

describe('ranges', () => {
  test.each([
    ['10.0.0.0/24', '10.0.0.1'],
    ['10.96.3.7/16', '10.96.0.1'],
  ])('the first address for Services in %s is %s', (text, first) => expect(firstAddress(parseRange(text))).toBe(first))
  test.each(['10.0.0.0', '10.0.0.0/33', '10.0.0.0/24/8', 'fd00::/108', '10.0.0.0/x', ''])(
    '%j is not a range of IPv4 addresses',
    (text) => {
      expect(() => parseRange(text)).toThrow('is not a range of IPv4 addresses')
    },
  )
  test.each([
    ['30000-32767', 30000, 32767],
    ['30000+10', 30000, 30010],
    ['8080', 8080, 8080],
  ])('%s is parsed to the ports %d to %d', (text, first, last) => expect(parsePortRange(text)).toEqual({ first, last }))
  test.each(['', '0-5', '9-8', '1-70000', 'a-b'])('%j is not a range of ports', (text) => {
    expect(() => parsePortRange(text)).toThrow('is not a range of ports')
  })
})

describe('addresses', () => {
  test('every Service has its own address until the range is full; a deleted Service releases its address', async () => {
    const { create, rejected, remove } = await cluster('10.1.0.0/29')
    const assigned = []
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) assigned.push((await create(name)).spec.clusterIP)
    expect(new Set(assigned)).toEqual(new Set([1, 2, 3, 4, 5, 6].map((last) => `10.1.0.${last}`)))
    expect(await rejected('g')).toContain('failed to allocate a serviceIP: range is full')
    await remove('c')
    expect((await create('g')).spec.clusterIP).toBe(assigned[2])
  })

  test.each([
    [{ clusterIP: '10.0.0.9' }, 'failed to allocate IP 10.0.0.9: provided IP is already allocated'],
    [{ clusterIP: '10.2.0.9' }, 'the provided network does not match the current range'],
    [{ clusterIP: '10.0.0.255' }, 'the provided network does not match the current range'],
    [{ ipFamilies: ['IPv6'] }, 'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'],
    [{ ipFamilyPolicy: 'RequireDualStack' }, 'this cluster is not configured for dual-stack services'],
    [{ type: 'NodePort', ports: [{ port: 80, nodePort: 30005 }] }, 'provided port is already allocated'],
    [{ type: 'NodePort', ports: [{ port: 80, nodePort: 80 }] }, 'The range of valid ports is 30000-30009'],
  ])('a Service with %j is rejected', async (spec, text) => {
    const { create, rejected } = await cluster()
    await create('taken', { type: 'NodePort', clusterIP: '10.0.0.9', ports: [{ port: 80, nodePort: 30005 }] })
    expect(await rejected('s', spec)).toContain(text)
  })

  test.each([
    [{ clusterIP: 'None' }, ['None']],
    [{ type: 'ExternalName', externalName: 'a.example.com' }, undefined],
  ])('a Service with %j gets no address', async (spec, clusterIPs) => {
    const { create } = await cluster()
    expect((await create('s', spec)).spec.clusterIPs).toEqual(clusterIPs)
  })

  test('an address that is requested concurrently is allocated once', async () => {
    const { rejected } = await cluster()
    const outcomes = await Promise.all(['a', 'b', 'c'].map((name) => rejected(name, { clusterIP: '10.0.0.9' })))
    expect(outcomes.filter((outcome) => outcome === 'accepted')).toHaveLength(1)
  })

  test('a Service keeps its address until it becomes an ExternalName', async () => {
    const { create, change } = await cluster()
    const { clusterIP } = (await create('s')).spec
    expect((await change('s', { selector: { c: 'd' } })).spec.clusterIP).toBe(clusterIP)
    expect((await change('s', { type: 'ExternalName', externalName: 'a.b' })).spec.clusterIP).toBeUndefined()
  })
})

describe('node ports', () => {
  test('ports with the same number and different protocols share a node port, which can be requested', async () => {
    const { create } = await cluster()
    const tcpAndUdp = (nodePort?: number) => [
      { name: 't', port: 53 },
      { name: 'u', port: 53, protocol: 'UDP', ...(nodePort ? { nodePort } : {}) },
    ]
    const { ports = [] } = (await create('dns', { type: 'NodePort', ports: tcpAndUdp() })).spec
    expect(ports[0]!.nodePort).toBe(ports[1]!.nodePort)
    const requested = (await create('dns2', { type: 'NodePort', ports: tcpAndUdp(30003) })).spec
    expect(requested.ports!.map(({ nodePort }) => nodePort)).toEqual([30003, 30003])
  })

  test('are released when the Service becomes a ClusterIP Service, and can be exhausted', async () => {
    const { create, change, rejected } = await cluster(undefined, '30000-30000')
    await create('a', { type: 'NodePort' })
    expect(await rejected('b', { type: 'LoadBalancer' })).toBe(
      '500 InternalError: Internal error occurred: failed to allocate a nodePort: range is full',
    )
    expect((await create('c', { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false })).spec.ports).toEqual([
      { port: 80, protocol: 'TCP', targetPort: 80 },
    ])
    expect((await change('a', { type: 'ClusterIP' })).spec.ports![0]!.nodePort).toBeUndefined()
    expect((await create('b', { type: 'LoadBalancer' })).spec.ports![0]!.nodePort).toBe(30000)
  })
})
