import { BeforeClusterCreate, type Cluster, createCatalog, ExtensionConfig, hookCatalog } from '@capstan/api'
import {
  createExtensionClient,
  defineExtension,
  extensionServer,
  type FetchHandler,
  httpsHookTransport,
  keepOwnCertificate,
  type Listening,
  listen,
  on,
  proceedNow,
} from '@capstan/extension'
import { getCondition, messageOf, minutes, Secret, silent, systemClock, VirtualClock } from '@capstan/kube'
import type { CertifiedKey } from '@capstan/kube/node'
import { testEnv } from '@capstan/testing'
import { expect, test } from 'vitest'
import { createExtensionConfigController } from './controller.ts'

const cluster = { apiVersion: 'v1', kind: 'Cluster', metadata: { name: 'c', namespace: 'default' } } as Cluster

test('no call fails while the certificate of an extension and its authority are renewed', async () => {
  // TLS uses the system clock: certificates issued on the virtual clock must be valid at the system time.
  const clock = new VirtualClock(systemClock.now() - minutes(110))
  const extension = defineExtension({ name: 'x', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => proceedNow())] })
  const serve = extensionServer(extension)
  /** Number of calls. Every second response closes its connection, so that later calls open connections with the current certificate. */
  let calls = 0
  const handle: FetchHandler = async (request) => {
    const response = await serve(request)
    if (calls++ % 2 === 0) response.headers.set('connection', 'close')
    return response
  }

  const transport = httpsHookTransport()
  const extensions = createExtensionClient({
    transport,
    catalog: createCatalog(hookCatalog),
    // Calls use the system clock, independent of the virtual clock of the controllers and certificates.
    clock: systemClock,
    log: silent,
    namespaceLabels: async () => ({}),
  })
  const env = await testEnv({ clock, kinds: [ExtensionConfig], controllers: [createExtensionConfigController({ extensions })] })

  let server: Listening | undefined
  const servedCertificates = new Set<string>()
  /** Number of CA certificates in each published bundle. */
  const bundleSizes: number[] = []
  const certificates = await keepOwnCertificate({
    commonName: 'x',
    ipAddresses: ['127.0.0.1'],
    clock,
    log: silent,
    validity: { authority: minutes(130), serving: minutes(125) },
    async trust(bundle) {
      bundleSizes.push(bundle.split('BEGIN CERTIFICATE').length - 1)
      const data = { 'ca.crt': Buffer.from(bundle).toString('base64') }
      const metadata = { namespace: 'default', name: 'ca' }
      await env.client.apply(Secret, { metadata, data }, { fieldManager: 'test', force: true })
    },
    async serve(certified: CertifiedKey) {
      servedCertificates.add(certified.certificate)
      if (server) server.renew(certified)
      else server = await listen(handle, certified)
    },
  })

  const failures: string[] = []
  let stopped = false
  let succeeded = 0
  const load = async () => {
    while (!stopped) {
      await extensions.callAll(BeforeClusterCreate, cluster, { cluster }).then(
        () => succeeded++,
        (err) => failures.push(messageOf(err)),
      )
    }
  }
  try {
    await env.client.create(ExtensionConfig, {
      metadata: { name: 'x', annotations: { 'runtime.cluster.x-k8s.io/inject-ca-from-secret': 'default/ca' } },
      spec: { clientConfig: { url: server!.url } },
    })
    await env.settle()
    const discovered = async () => getCondition(await env.client.get(ExtensionConfig, { name: 'x' }), 'Discovered')?.status
    expect(await discovered()).toBe('True')
    const loads = Array.from({ length: 2 }, load)

    await env.advance(minutes(75))
    for (let step = 0; step < 12; step++) {
      await env.advance(minutes(3))
      const until = succeeded + 16
      while (succeeded < until && failures.length === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    stopped = true
    await Promise.all(loads)
    expect(failures).toEqual([])
    expect(succeeded).toBeGreaterThan(200)
    // The bundle contained the first authority, then also its successor, and at last only the successor.
    expect(bundleSizes).toEqual([1, 2, 1])
    expect(servedCertificates.size).toBeGreaterThanOrEqual(3)
    expect(await discovered()).toBe('True')
  } finally {
    stopped = true
    certificates.close()
    await env.close()
    await server?.close(0)
    transport.close()
  }
})
