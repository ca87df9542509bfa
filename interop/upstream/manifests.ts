/**
 * Reads upstream's CustomResourceDefinitions and webhook configurations, and changes them for managers that run as processes on loopback.
 * For managers in a cluster, kustomize and cert-manager make such changes.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CustomResourceDefinition, Input, MutatingWebhookConfiguration, ValidatingWebhookConfiguration } from '@capstan/kube'
import { parse, parseAllDocuments } from 'yaml'
import { moduleFolder } from '../shared/tools.ts'
import type { Component } from './managers.ts'

export interface Manifests {
  readonly crds: readonly (Input<CustomResourceDefinition> & { metadata: { name: string } })[]
  readonly mutating: readonly Input<MutatingWebhookConfiguration>[]
  readonly validating: readonly Input<ValidatingWebhookConfiguration>[]
}

interface WebhookServers {
  /** Returns the URL of a component's webhook server. */
  urlOf(tool: string): string
  /** Certificate of the authority that signed the serving certificates of all webhook servers, PEM. */
  readonly ca: string
}

export async function readManifests(components: readonly Component[], servers: WebhookServers): Promise<Manifests> {
  const crds: Manifests['crds'][number][] = []
  const mutating: Input<MutatingWebhookConfiguration>[] = []
  const validating: Input<ValidatingWebhookConfiguration>[] = []
  for (const component of components) {
    const folder = join(await moduleFolder(component.tool, component.module), component.config)
    const bases = join(folder, 'crd/bases')
    for (const file of readdirSync(bases).sort())
      crds.push(definition(component, servers, parse(readFileSync(join(bases, file), 'utf8')) as Manifests['crds'][number]))
    for (const document of parseAllDocuments(readFileSync(join(folder, 'webhook/manifests.yaml'), 'utf8'))) {
      const changed = configuration(component, servers, document.toJS() as Configuration)
      if (changed.kind === 'MutatingWebhookConfiguration') mutating.push(changed as Input<MutatingWebhookConfiguration>)
      else validating.push(changed as Input<ValidatingWebhookConfiguration>)
    }
  }
  return { crds, mutating, validating }
}

/** Adds the labels that kustomize and `clusterctl init` add, and the conversion webhook of the component's manager. */
function definition(
  { tool, provider, isProvider }: Component,
  servers: WebhookServers,
  crd: Manifests['crds'][number],
): Manifests['crds'][number] {
  const contracts = isProvider ? { 'cluster.x-k8s.io/v1beta1': 'v1beta1', 'cluster.x-k8s.io/v1beta2': 'v1beta2' } : {}
  const labels = {
    ...crd.metadata.labels,
    'cluster.x-k8s.io/provider': provider,
    'clusterctl.cluster.x-k8s.io': '',
    ...contracts,
  }
  const clientConfig = { url: `${servers.urlOf(tool)}/convert`, caBundle: base64(servers.ca) }
  return {
    ...crd,
    metadata: { ...crd.metadata, labels },
    spec: { ...crd.spec, conversion: { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig } } },
  }
}

type Configuration = Input<MutatingWebhookConfiguration | ValidatingWebhookConfiguration> & { metadata: { name: string } }

/** Adds the prefix and label that kustomize adds, and replaces the Service of each webhook by the URL of the component's manager. */
function configuration(
  { tool, prefix, provider }: Component,
  { urlOf, ca }: WebhookServers,
  original: Configuration,
): Configuration {
  const caBundle = base64(ca)
  return {
    ...original,
    metadata: { name: prefix + original.metadata.name, labels: { 'cluster.x-k8s.io/provider': provider } },
    webhooks: original.webhooks!.map((webhook) => ({
      ...webhook,
      clientConfig: { url: urlOf(tool) + (webhook.clientConfig.service?.path ?? ''), caBundle },
    })),
  } as Configuration
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
