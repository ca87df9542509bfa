/**
 * Reads upstream's CustomResourceDefinitions and webhook configurations, and changes them for processes on loopback, as kustomize and
 * cert-manager change them for a cluster.
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
  /** Address of a component's webhook server. */
  urlOf(tool: string): string
  /** Certificate of the authority that signed its serving certificate, PEM. */
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
      const hook = configuration(component, servers, document.toJS() as Configuration)
      if (hook.kind === 'MutatingWebhookConfiguration') mutating.push(hook as Input<MutatingWebhookConfiguration>)
      else validating.push(hook as Input<ValidatingWebhookConfiguration>)
    }
  }
  return { crds, mutating, validating }
}

/** Adds the labels that kustomize and `clusterctl init` add, and the conversion webhook of the manager that owns the kind. */
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

function configuration({ tool, prefix, provider }: Component, { urlOf, ca }: WebhookServers, hook: Configuration): Configuration {
  const caBundle = base64(ca)
  return {
    ...hook,
    metadata: { name: prefix + hook.metadata.name, labels: { 'cluster.x-k8s.io/provider': provider } },
    webhooks: hook.webhooks!.map((webhook) => ({
      ...webhook,
      clientConfig: { url: urlOf(tool) + (webhook.clientConfig.service?.path ?? ''), caBundle },
    })),
  } as Configuration
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
