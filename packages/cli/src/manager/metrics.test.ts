import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { registerProcessMetrics, requestCounter } from './metrics.ts'

test('counts requests by code, method and host, also before a registry exists, and registers process metrics', async () => {
  const requests = requestCounter('https://10.0.0.1:6443')
  requests.count('GET', '200')
  requests.count('GET', '200')
  requests.count('PATCH', '<error>')
  const registry = new Registry()
  registerProcessMetrics(registry, requests)
  const text = await registry.metrics()
  expect(text).toContain('rest_client_requests_total{code="200",method="GET",host="10.0.0.1:6443"} 2')
  expect(text).toContain('rest_client_requests_total{code="<error>",method="PATCH",host="10.0.0.1:6443"} 1')
  expect(text).toContain('process_resident_memory_bytes')
})
