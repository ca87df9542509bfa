/** Tests behavior of the provider that `capstan new provider` creates, beyond the requirements of the contracts. */
import { X509Certificate } from 'node:crypto'
import { Cluster } from '@capstan/api'
import { Secret, StatusError, type Transport, withSend } from '@capstan/kube'
import { parseKubeconfig } from '@capstan/kube/node'
import { providerEnv } from '@capstan/testing'
import { expect, test } from 'vitest'
import { memoryCloud } from '../../templates/provider/cloud.ts'
import { SampleCluster } from '../../templates/provider/cluster.ts'
import { SampleControlPlane } from '../../templates/provider/control-plane.ts'
import { controllers, kinds } from '../../templates/provider/provider.ts'

const metadata = { namespace: 'default', name: 'demo' }
const refTo = ({ group, kind }: { group: string; kind: string }, name = 'demo') => ({ apiGroup: group, kind, name })

test('if the control plane has another name than the Cluster, the deletion of the Cluster still removes all resources from the cloud', async () => {
  const cloud = memoryCloud()
  const env = await providerEnv({ kinds, start: () => ({ controllers: controllers(cloud), close: async () => {} }) })
  await env.client.create(SampleCluster, { metadata, spec: {} })
  const controlPlane = { ...metadata, name: 'other' }
  await env.client.create(SampleControlPlane, { metadata: controlPlane, spec: { version: 'v1.36.0' } })
  const spec = { infrastructureRef: refTo(SampleCluster), controlPlaneRef: refTo(SampleControlPlane, 'other') }
  await env.client.create(Cluster, { metadata, spec })
  await env.settle()
  expect([...cloud.resources].sort()).toEqual(['control plane default/other', 'network default/demo'])
  await env.client.delete(Cluster, metadata)
  await env.settle()
  expect([...cloud.resources]).toEqual([])
  await env.close()
})

test('after a restart, the kubeconfig uses the certificate authority that was created before the process stopped', async () => {
  let stopsBeforeKubeconfig = true
  const between = (transport: Transport): Transport =>
    withSend(transport, async (request, signal) => {
      const name = (request.body as Secret | undefined)?.metadata?.name
      if (stopsBeforeKubeconfig && request.verb === 'create' && name === 'demo-kubeconfig') throw new StatusError('', 'stopped')
      return transport.send(request, signal)
    })
  const cloud = memoryCloud()
  const env = await providerEnv({ kinds, between, start: () => ({ controllers: controllers(cloud), close: async () => {} }) })
  await env.client.create(SampleCluster, { metadata, spec: {} })
  await env.client.create(SampleControlPlane, { metadata, spec: { version: 'v1.36.0' } })
  await env.client.create(Cluster, {
    metadata,
    spec: { infrastructureRef: refTo(SampleCluster), controlPlaneRef: refTo(SampleControlPlane) },
  })
  const secret = (purpose: string, field: string) =>
    env.client
      .get(Secret, { ...metadata, name: `demo-${purpose}` })
      .then(({ data }) => Buffer.from(data![field]!, 'base64').toString())
  await env.settle()
  const authority = await secret('ca', 'tls.crt')
  stopsBeforeKubeconfig = false
  await env.restart()
  await env.settle()
  expect(await secret('ca', 'tls.crt')).toBe(authority)
  const { clusters, users } = parseKubeconfig(await secret('kubeconfig', 'value'))
  const decode = (text: string | undefined) => Buffer.from(text!, 'base64').toString()
  expect(decode(clusters[0]!.cluster['certificate-authority-data'])).toBe(authority)
  const client = new X509Certificate(decode(users[0]!.user['client-certificate-data']))
  expect(client.verify(new X509Certificate(authority).publicKey)).toBe(true)
  await env.close()
})
