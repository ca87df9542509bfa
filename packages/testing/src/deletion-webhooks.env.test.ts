/**
 * Tests the webhook that protects dependents of a Cluster from deletion until BeforeClusterDelete allows it: the users for which the webhook
 * is called, and deletions while no manager runs.
 */
import { Cluster, coreKinds, Machine, OkToDeleteAnnotation } from '@capstan/api'
import type { WebhookTransport } from '@capstan/apiserver'
import { configureWebhooks, webhookHandler } from '@capstan/controller'
import { deletionAdmission } from '@capstan/core'
import { createClient, customResourceDefinition, seededRandom, ValidatingWebhookConfiguration, VirtualClock } from '@capstan/kube'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { expect, test } from 'vitest'

const account = (name: string) => `system:serviceaccount:kube-system:${name}`
const demo = { namespace: 'default', name: 'demo' }
const labels = { 'cluster.x-k8s.io/cluster-name': 'demo' }

/** Starts an API server on which the Cluster `demo` is being deleted, and its Machine `m` exists. */
async function aServer() {
  const admissions = deletionAdmission(coreKinds)
  const called: string[] = []
  let handle: ((request: Request) => Promise<Response>) | undefined
  const transport: WebhookTransport = {
    async post({ url }, body) {
      called.push(url.pathname)
      if (!handle) throw new Error('connection refused')
      const response = await handle(new Request(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body }))
      const bytes = Buffer.from(await response.arrayBuffer())
      return { status: response.status, contentType: 'application/json', body: bytes }
    },
    close() {},
  }
  const server = createApiServer({
    clock: new VirtualClock(),
    random: seededRandom(1),
    customResources: [Cluster, Machine].map((kind) => customResourceDefinition(kind)),
    webhooks: { transport },
  })
  await server.ready
  const client = createClient(server.transport())
  await configureWebhooks(client, 'test', admissions, (path) => ({ url: `https://127.0.0.1:1${path}` }))
  await client.create(Cluster, {
    metadata: { ...demo, finalizers: ['example.com/hold'] },
    spec: { topology: { classRef: { name: 'demo' }, version: 'v1.36.0' } },
  })
  await client.create(Machine, {
    metadata: { namespace: 'default', name: 'm', labels },
    spec: {
      clusterName: 'demo',
      bootstrap: { dataSecretName: 's' },
      infrastructureRef: { apiGroup: 'example.com', kind: 'Host', name: 'm' },
    },
  })
  await client.delete(Cluster, demo)
  return {
    client,
    called,
    startManager: () => void (handle = webhookHandler({ kinds: coreKinds, admission: { of: admissions, reader: client } })),
    deleteAs: (name: string) => createClient(server.transport({ name })).delete(Machine, { namespace: 'default', name: 'm' }),
    close: () => server.close(),
  }
}

const path = '/validate-cluster-x-k8s-io-v1beta2-machine-dependents'

test.each([account('generic-garbage-collector'), account('namespace-controller'), 'system:kube-controller-manager'])(
  'the webhook rejects the deletion of a Machine by %s until BeforeClusterDelete allows it',
  async (user) => {
    const { client, called, startManager, deleteAs, close } = await aServer()
    startManager()
    await expect(deleteAs(user)).rejects.toThrow(
      'machines.cluster.x-k8s.io "m" is forbidden: Cluster default/demo or its namespace is being deleted, and BeforeClusterDelete has not allowed the deletion',
    )
    expect(called).toEqual([path])
    await client.patch(Cluster, demo, { type: 'merge', body: { metadata: { annotations: { [OkToDeleteAnnotation]: '' } } } })
    await deleteAs(user)
    await close()
  },
)

test.each(['system:admin', 'jane', account('deployment-controller'), 'system:serviceaccount:capi-system:capi-manager'])(
  'the deletion of a Machine by %s calls no webhook',
  async (user) => {
    const { called, startManager, deleteAs, close } = await aServer()
    startManager()
    await deleteAs(user)
    expect(called).toEqual([])
    await close()
  },
)

test('no deletion is rejected while the manager is unreachable', async () => {
  const { client, called, deleteAs, close } = await aServer()
  await deleteAs(account('generic-garbage-collector'))
  expect(called).toEqual([path])
  const { webhooks = [] } = await client.get(ValidatingWebhookConfiguration, { name: 'test' })
  expect(webhooks.length).toBeGreaterThan(5)
  expect(new Set(webhooks.map(({ failurePolicy }) => failurePolicy))).toEqual(new Set(['Ignore']))
  await close()
})
