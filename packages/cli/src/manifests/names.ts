/** Names of objects that both the manifests and the managers of a provider use. */
import { ConvertPath } from '@capstan/controller'
import type { WebhookClientConfig } from '@capstan/kube'
import type { ProviderName } from '@capstan/lab'

/** Names of a provider and its objects. Those of core are upstream's, so that tools find its objects. */
interface Names {
  readonly namespace: string
  /** Beginning of the names of most objects. */
  readonly prefix: string
  /** Name of the provider in clusterctl. */
  readonly clusterctl: string
  /** Value of the label `cluster.x-k8s.io/provider`, and name of the provider's folder in a clusterctl repository. */
  readonly label: string
  /** Name of the components file for clusterctl. */
  readonly file: string
}

export const providerNames: Readonly<Record<ProviderName, Names>> = {
  // clusterctl accepts `cluster-api` as the only name of a core provider.
  core: {
    namespace: 'capi-system',
    prefix: 'capi',
    clusterctl: 'cluster-api',
    label: 'cluster-api',
    file: 'core-components.yaml',
  },
  local: {
    namespace: 'capstan-local-system',
    prefix: 'capstan-local',
    clusterctl: 'local',
    label: 'infrastructure-local',
    file: 'infrastructure-components.yaml',
  },
}

/** Name of a provider's webhook configurations. It differs by provider, so that managers of several providers can run in one cluster. */
export const webhookConfiguration = (provider: ProviderName): string => `capstan-${provider}`

export const webhookService = (provider: ProviderName): string => `${providerNames[provider].prefix}-webhook-service`

/** Returns the conversion webhook behind the Service of the manifests, without the certificate authority. */
export const conversionByService = (provider: ProviderName): WebhookClientConfig => ({
  service: { namespace: providerNames[provider].namespace, name: webhookService(provider), path: ConvertPath },
})
