/** Registers the running extension in the management cluster, and makes core repeat the hook calls that block Clusters. */
import { Cluster, ExtensionConfig, RetryHooksAnnotation } from '@capstan/api'
import { effectiveHandlers } from '@capstan/core'
import type { Client } from '@capstan/kube'
import { isTrue, keyOf, orAbsent } from '@capstan/kube'
import type { DemoChanges } from '../demo.ts'
import { authorityFrom, publishAuthority } from '../extension-authority.ts'
import { untilObject } from '../until-object.ts'
import type { AnnouncedHandler } from './protocol.ts'

/** A running extension that is to be registered. */
export interface ServedExtension {
  /** Name of its ExtensionConfig. */
  readonly name: string
  readonly url: string
  readonly settings: { readonly [name: string]: string }
  readonly handlers: readonly AnnouncedHandler[]
  /** Differs for each load of the extension. */
  readonly load: string
}

/** Annotation whose change triggers the discovery of handlers and of class variables at once. */
const LoadAnnotation = 'runtime.capstan.dev/dev-load'

/** Secret with the certificate authority that signs the extension's certificate. */
const authoritySecret = { namespace: 'default', name: 'capstan-dev-extension-ca' }

const fieldManager = 'capstan-dev'

/** Publishes certificate authorities (PEM), so that core trusts them when it calls the extension. */
export const trust = (client: Client, bundle: string): Promise<void> =>
  publishAuthority(client, authoritySecret, bundle, fieldManager)

/** Registers the extension. Resolves when core has discovered its handlers. */
export async function register(client: Client, served: ServedExtension, signal: AbortSignal): Promise<void> {
  const { name, url, settings, handlers, load } = served
  await client.apply(
    ExtensionConfig,
    {
      metadata: { name, annotations: { [LoadAnnotation]: load, ...authorityFrom(authoritySecret) } },
      spec: { clientConfig: { url }, settings },
    },
    { fieldManager, force: true, signal },
  )
  const isDiscovered = (config: ExtensionConfig) =>
    isTrue(config, 'Discovered') && fingerprint(discoveredHandlers(config)) === fingerprint(effectiveHandlers(config, handlers))
  await untilObject(client, ExtensionConfig, { name }, isDiscovered, signal)
}

/** Returns a text that is equal for equal sets of registered handlers, independent of their order. */
const fingerprint = (handlers: readonly AnnouncedHandler[]): string =>
  handlers
    .map(({ name, hook, apiVersion, timeoutSeconds, failurePolicy = 'Fail' }) =>
      [name, apiVersion, hook, timeoutSeconds || 10, failurePolicy].join(' '),
    )
    .sort()
    .join(', ')

/** Returns the discovered handlers, named as in the extension: without the name of the ExtensionConfig. */
const discoveredHandlers = ({ metadata, status }: ExtensionConfig): AnnouncedHandler[] =>
  (status?.handlers ?? []).map(({ name, requestHook, timeoutSeconds, failurePolicy }) => ({
    name: name.slice(0, -metadata.name.length - 1),
    ...requestHook,
    ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
    ...(failurePolicy === undefined ? {} : { failurePolicy }),
  }))

/**
 * Makes core repeat the hook calls that block any Cluster, its MachineDeployments or its Machines, despite cached responses and
 * backoff.
 */
export async function repeatHooks(client: Client, annotationValue: string, signal: AbortSignal): Promise<void> {
  const { items } = await client.list(Cluster, { signal })
  const body = { metadata: { annotations: { [RetryHooksAnnotation]: annotationValue } } }
  for (const cluster of items) await orAbsent(client.patch(Cluster, keyOf(cluster), { type: 'merge', body }, { signal }))
}

/**
 * Returns the changes to the demo objects that are needed for core to call the handlers of the ExtensionConfig `extension`. The
 * ClusterClass must name handlers of topology mutation and upgrade plan hooks. Each of its patches names one handler of GeneratePatches,
 * and can name one of ValidateTopology and one of DiscoverVariables; the ClusterClass names one handler of GenerateUpgradePlan. `uncalled`
 * contains the handlers of these hooks that remain. For CanUpdateMachineSet and CanUpdateMachine, maxSurge is 0: with the default of 1, a
 * new Machine would replace the only Machine of each MachineSet and of the control plane, and none would be updated in place.
 */
export function demoChangesFor(extension: string, handlers: readonly AnnouncedHandler[]): DemoChanges {
  const named = (hook: string) => handlers.filter((handler) => handler.hook === hook).map(({ name }) => `${name}.${extension}`)
  const [generate, validate, variables] = [named('GeneratePatches'), named('ValidateTopology'), named('DiscoverVariables')]
  const patches = generate.map((handler, index) => ({
    name: index === 0 ? extension : `${extension}-${index + 1}`,
    external: {
      generatePatchesExtension: handler,
      ...(validate[index] ? { validateTopologyExtension: validate[index] } : {}),
      ...(variables[index] ? { discoverVariablesExtension: variables[index] } : {}),
    },
  }))
  const [plan, ...otherPlans] = named('GenerateUpgradePlan')
  return {
    patches,
    ...(plan === undefined ? {} : { upgrade: { external: { generateUpgradePlanExtension: plan } } }),
    noSurge: { workers: named('CanUpdateMachineSet').length > 0, controlPlane: named('CanUpdateMachine').length > 0 },
    uncalled: [...validate.slice(generate.length), ...variables.slice(generate.length), ...otherPlans],
  }
}
