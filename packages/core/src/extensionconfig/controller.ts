import { ExtensionConfig, LastDiscoveredAnnotation } from '@capstan/api'
import { type Controller, controller, type Index, type Predicate, type Source, watches, whenChanged } from '@capstan/controller'
import { breakerMetrics, callMetrics, type ExtensionClient, messageMetrics } from '@capstan/extension'
import { equal, keyOf, keyText, Secret } from '@capstan/kube'
import { caSecretOf } from './ca-bundle.ts'
import { FirstRound } from './first-round.ts'
import { reconcileExtensionConfig, takeOverExtensionConfig } from './reconcile.ts'

export interface ExtensionConfigOptions {
  /** Learns from this controller which handlers there are. */
  readonly extensions: ExtensionClient
  readonly concurrency?: number
}

/** The controller of ExtensionConfigs: without it no hook is called, and no topology begins. */
export function createExtensionConfigController({ extensions, concurrency = 10 }: ExtensionConfigOptions): Controller {
  const firstRound = new FirstRound((configs) => extensions.warmUp(configs))
  return controller({
    name: 'extensionconfig',
    for: ExtensionConfig,
    when: configMatters,
    watches: [watches(Secret, (secret, cache) => cache.byIndex(byCASecret, keyText(keyOf(secret))).map(keyOf), secretMatters)],
    sources: [firstRoundBegins(firstRound, extensions)],
    concurrency,
    metrics: metricsOf(extensions),
    reconcile: (key, context) => reconcileExtensionConfig(key, { ...context, extensions, firstRound }),
  })
}

/**
 * The controller for a process beside that of core: it takes over the handlers that core has discovered, calls no server for them
 * and writes nothing. Upstream: ReadOnly of core/reconcilers/extensionconfig, as the control plane provider runs it, v1.14.
 */
export function createReadOnlyExtensionConfigController({ extensions, concurrency = 10 }: ExtensionConfigOptions): Controller {
  const firstRound = new FirstRound((configs) => extensions.warmUp(configs))
  return controller({
    name: 'extensionconfig',
    for: ExtensionConfig,
    sources: [firstRoundBegins(firstRound, extensions)],
    concurrency,
    metrics: metricsOf(extensions),
    reconcile: (key, context) => takeOverExtensionConfig(key, { ...context, extensions, firstRound }),
  })
}

/** Runs once informers hold what the server has. */
const firstRoundBegins = (firstRound: FirstRound, extensions: ExtensionClient): Source => ({
  start(_enqueue, { cache }) {
    const all = () => cache.byIndex(everyConfig, '')
    extensions.readyWhen(() => all().every((config) => firstRound.hasTried(config)))
    firstRound.begin(all())
  },
})

const everyConfig: Index<ExtensionConfig> = { name: 'every extensionconfig', kind: ExtensionConfig, values: () => [''] }

/** Not its own reports. */
const configMatters = whenChanged(({ metadata: { uid, generation, annotations, deletionTimestamp } }: ExtensionConfig) => ({
  uid,
  generation,
  annotations: { ...annotations, [LastDiscoveredAnnotation]: undefined },
  deletionTimestamp,
}))

const secretMatters: Predicate<Secret> = ({ previous, object }) => !equal(previous?.data, object?.data)

const byCASecret: Index<ExtensionConfig> = {
  name: 'extensionconfig by CA secret',
  kind: ExtensionConfig,
  values: (config) => [caSecretOf(config) ?? []].flat(),
}

const metricsOf =
  (extensions: ExtensionClient): NonNullable<Controller['metrics']> =>
  (registry) => {
    extensions.observe(callMetrics(registry))
    breakerMetrics(registry, extensions.breakers)
    messageMetrics(registry, extensions.unstableMessages)
  }
