/** Generates docs/reference/metrics.md from the metric registries of a manager and an extension server. */
import { createCatalog, hookCatalog } from '@capstan/api'
import { createManager } from '@capstan/controller'
import { createExtensionConfigController } from '@capstan/core'
import {
  certificateMetric,
  createExtensionClient,
  extensionServer,
  defineExtension,
  inProcess,
  servedCallMetrics,
} from '@capstan/extension'
import { createClient, seededRandom, silent, type Transport, VirtualClock } from '@capstan/kube'
import { type MetricObject, Registry } from 'prom-client'
import { requestCounter } from '../packages/cli/src/manager/metrics.ts'
import { warning } from './gen-pages.ts'

export async function metricsPage(): Promise<string> {
  const served = new Registry()
  servedCallMetrics(served)
  certificateMetric(served, () => 0)
  return [
    warning,
    '# Metrics',
    '',
    '## Manager',
    '',
    '`capstan manager` serves these metrics at `/metrics` of the address `--diagnostics-address`. If neither this flag nor `--health-addr` is given, it serves them on loopback, at the port `--diagnostics-port`. Metrics whose names begin with `capi_`, `controller_runtime_`, `leader_election_`, `rest_client_` or `workqueue_` have the names, labels and buckets of upstream. Metrics of Node and of the process are served too (`nodejs_…`, `process_…`).',
    '',
    ...table(await managerRegistry()),
    '',
    '## Extension server',
    '',
    '`runExtension` serves these metrics at `/metrics` of `--diagnostics-address`, with those of Node and of the process (`nodejs_…`, `process_…`).',
    '',
    ...table(served),
    '',
  ].join('\n')
}

/** Returns the metrics of a manager that is never started, with leader election and the controller of ExtensionConfigs. */
async function managerRegistry(): Promise<Registry> {
  const clock = new VirtualClock()
  const client = createClient(unreachableServer)
  const extensions = createExtensionClient({
    transport: inProcess(extensionServer(defineExtension({ name: 'none', handlers: [] }))),
    catalog: createCatalog(hookCatalog),
    clock,
    log: silent,
    namespaceLabels: async () => ({}),
  })
  const { metrics } = createManager({
    client,
    clock,
    random: seededRandom(1),
    log: silent,
    controllers: [createExtensionConfigController({ extensions })],
    leaderElection: { namespace: 'none', name: 'none', identity: 'none' },
  })
  metrics.registry.registerMetric(requestCounter('https://none').metric)
  return metrics.registry
}

const unreachableServer: Transport = {
  send: () => Promise.reject(new Error('There is no server')),
  watch: () => Promise.reject(new Error('There is no server')),
  close() {},
}

function table(registry: Registry): string[] {
  const metrics = registry.getMetricsAsArray() as unknown as (MetricObject & { readonly labelNames: readonly string[] })[]
  return [
    '| name | type | labels | |',
    '| --- | --- | --- | --- |',
    ...metrics.map(({ name, type, labelNames, help }) => {
      const labels = labelNames.map((label) => `\`${label}\``).join(', ')
      return `| \`${name}\` | ${type} | ${labels} | ${help} |`
    }),
  ]
}
