import { BeforeClusterCreate, createCatalog, type ExtensionConfig, hookCatalog } from '@capstan/api'
import { silent, VirtualClock } from '@capstan/kube'
import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { createExtensionClient } from './client.ts'
import { breakerMetrics, callMetrics } from './metrics.ts'
import { inProcess } from './transport.ts'

const config: ExtensionConfig = {
  apiVersion: 'runtime.cluster.x-k8s.io/v1beta2',
  kind: 'ExtensionConfig',
  metadata: { name: 'x', uid: 'x', resourceVersion: '1', creationTimestamp: '' },
  spec: { clientConfig: { url: 'https://x:9443' }, namespaceSelector: {} },
  status: {
    handlers: [
      {
        name: 'gate.x',
        requestHook: { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', hook: 'BeforeClusterCreate' },
        failurePolicy: 'Fail',
      },
    ],
  },
}
const cluster = { apiVersion: 'v1', kind: 'Cluster', metadata: { name: 'c', namespace: 'd' } } as never

it("counts calls in upstream's metrics, and by handler and outcome", async () => {
  const registry = new Registry()
  const answers = [
    () => Response.json({ status: 'Success', retryAfterSeconds: 5 }),
    () => Response.json({ status: 'Unknown' }),
    () => new Response('', { status: 503 }),
  ]
  const client = createExtensionClient({
    transport: inProcess(async () => (answers.shift() ?? (() => Promise.reject(new Error('connection refused'))))()),
    catalog: createCatalog(hookCatalog),
    clock: new VirtualClock(),
    log: silent,
    namespaceLabels: async () => ({}),
  })
  client.observe(callMetrics(registry))
  breakerMetrics(registry, client.breakers)
  client.warmUp([config])
  for (let i = 0; i < 4; i++) await client.callAll(BeforeClusterCreate, cluster, { cluster }).catch(() => {})

  const lines = (await registry.metrics()).split('\n').filter((line) => /^cap\w+(_total|_count|_state)\{/.test(line))
  const hook = 'group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterCreate"'
  const handler = 'extension_config="x",handler="gate.x",announced_version="v1alpha1",hook="BeforeClusterCreate"'
  expect(lines.sort()).toEqual(
    [
      `capi_runtime_sdk_requests_total{code="200",host="x:9443",${hook},status="Success"} 1`,
      `capi_runtime_sdk_requests_total{code="200",host="x:9443",${hook},status="Unknown"} 1`,
      `capi_runtime_sdk_requests_total{code="503",host="x:9443",${hook},status="Unknown"} 1`,
      `capi_runtime_sdk_requests_total{code="<error>",host="x:9443",${hook},status="Unknown"} 1`,
      `capi_runtime_sdk_request_duration_seconds_count{host="x:9443",${hook}} 4`,
      `capstan_runtime_sdk_handler_request_duration_seconds_count{extension_config="x",handler="gate.x",hook="BeforeClusterCreate"} 4`,
      `capstan_runtime_sdk_handler_attempts_total{extension_config="x",handler="gate.x",hook="BeforeClusterCreate"} 4`,
      `capstan_runtime_sdk_handler_requests_total{${handler},outcome="Success"} 1`,
      `capstan_runtime_sdk_handler_requests_total{${handler},outcome="Unknown"} 1`,
      `capstan_runtime_sdk_handler_requests_total{${handler},outcome="bad-status"} 1`,
      `capstan_runtime_sdk_handler_requests_total{${handler},outcome="unreachable"} 1`,
      'capstan_runtime_sdk_breaker_state{handler="gate.x"} 0',
    ].sort(),
  )
})

it('reports an open breaker until the handler is registered again', async () => {
  const registry = new Registry()
  const client = createExtensionClient({
    transport: inProcess(() => Promise.reject(new Error('connection refused'))),
    catalog: createCatalog(hookCatalog),
    clock: new VirtualClock(),
    log: silent,
    namespaceLabels: async () => ({}),
  })
  breakerMetrics(registry, client.breakers)
  client.warmUp([config])
  const call = () => client.callAll(BeforeClusterCreate, cluster, { cluster }).catch((err) => err.message as string)
  for (let i = 0; i < 5; i++) await call()
  expect(await call()).toMatch(/failed to call extension handler "gate.x": not called, because the last 5 calls failed: /)
  expect(await registry.metrics()).toContain('capstan_runtime_sdk_breaker_state{handler="gate.x"} 2')
  client.register(config)
  expect(await call()).toMatch('connection refused')
  expect(await registry.metrics()).toContain('capstan_runtime_sdk_breaker_state{handler="gate.x"} 0')
})
