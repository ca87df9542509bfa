/** Applies the output of `capstan manifests` to an API server. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Client, CustomResourceDefinition, type Kind, type KubeObject, MutatingWebhookConfiguration } from '@capstan/kube'
import { parseAllDocuments } from 'yaml'
import type { RunningApiServer } from '../processes/api-server.ts'
import type { Programs } from '../processes/programs.ts'
import { output, toolPaths } from '../shared/tools.ts'
import { until } from '../shared/until.ts'
import type { Deployment } from './pod.ts'

/** Namespace, ServiceAccount, Service and Pod address of each provider. */
export const providers = [
  { provider: 'core', namespace: 'capi-system', account: 'capi-manager', service: 'capi-webhook-service', address: '10.1.0.1' },
  {
    provider: 'local',
    namespace: 'capstan-local-system',
    account: 'capstan-local-manager',
    service: 'capstan-local-webhook-service',
    address: '10.1.0.2',
  },
] as const
export type Provider = (typeof providers)[number]
/** Returns the user name of the provider's ServiceAccount, as in audit logs. */
export const userOf = ({ namespace, account }: Provider): string => `system:serviceaccount:${namespace}:${account}`

interface InstallOptions {
  /** Further arguments of `capstan manifests`. */
  readonly flags?: readonly string[]
  /** Addresses of the pods. Default: the address of the provider. */
  readonly addresses?: readonly string[]
}

/**
 * Writes the manifests of a provider to files, and applies them with kubectl. The addresses of the pods become the endpoints of the
 * Service. Returns the provider's Deployment.
 */
export async function install(
  apiServer: RunningApiServer,
  programs: Programs,
  { provider, namespace, service, address }: Provider,
  { flags = [], addresses = [address] }: InstallOptions = {},
): Promise<Deployment> {
  const [kubectl] = await toolPaths('kubectl')
  const folder = join(programs.folder, provider)
  mkdirSync(folder)
  const capstan = ['packages/cli/bin/capstan.js', 'manifests', provider, ...flags]
  const text = await output(process.execPath, capstan, { cwd: process.cwd() })
  const objects = parseAllDocuments(text).map((document) => document.toJS() as KubeObject)
  const endpoints = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: service, namespace, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    ports: [{ name: '', port: 9443, protocol: 'TCP' }],
    endpoints: endpointsOf(addresses),
  }
  writeFileSync(join(folder, 'components.yaml'), text)
  writeFileSync(join(folder, 'endpoints.json'), JSON.stringify(endpoints))
  for (const file of ['components.yaml', 'endpoints.json'])
    await output(kubectl, ['--kubeconfig', apiServer.kubeconfig, 'apply', '--server-side', '-f', join(folder, file)], {
      cwd: folder,
    })
  return objects.find(({ kind }) => kind === 'Deployment') as Deployment
}

const EndpointSlice: Kind = {
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  scope: 'Namespaced',
}

/** Makes these addresses the only endpoints of the Service, as Kubernetes does when all other Pods are deleted. */
export async function routeTo(client: Client, { namespace, service }: Provider, addresses: readonly string[]): Promise<void> {
  const body = { endpoints: endpointsOf(addresses) }
  await client.patch(EndpointSlice, { namespace, name: service }, { type: 'merge', body } as never)
}

const endpointsOf = (addresses: readonly string[]) =>
  addresses.map((address) => ({ addresses: [address], conditions: { ready: true } }))

/**
 * Resolves when the managers have written the CA bundle to their MutatingWebhookConfigurations and to the CRDs that they
 * convert.
 */
export async function configured(client: Client): Promise<void> {
  for (const { provider } of providers)
    await until(client, MutatingWebhookConfiguration, `webhooks of ${provider}`, (all) =>
      all.some(({ metadata, webhooks = [] }) => metadata.name === `capstan-${provider}` && webhooks.every(hasCABundle)),
    )
  await until(client, CustomResourceDefinition, 'CA bundles of conversion webhooks', (all) => all.every(canConvert))
}

const hasCABundle = ({ clientConfig }: { readonly clientConfig: { readonly caBundle?: string } }) =>
  clientConfig.caBundle !== undefined
const canConvert = ({ spec: { conversion } }: CustomResourceDefinition) =>
  conversion?.strategy !== 'Webhook' || conversion.webhook?.clientConfig?.caBundle !== undefined
