import { ExtensionConfig, LastDiscoveredAnnotation } from '@capstan/api'
import {
  type Controller,
  controller,
  type Index,
  type MapFunction,
  type Predicate,
  type Source,
  watches,
  whenChanged,
} from '@capstan/controller'
import { breakerMetrics, callMetrics, type ExtensionClient, messageMetrics } from '@capstan/extension'
import { equal, isDeleting, keyOf, keyText, Secret } from '@capstan/kube'
import { caSecretOf } from './ca-bundle.ts'
import { Warmup } from './warmup.ts'
import { reconcileExtensionConfig, registerDiscoveredHandlers } from './reconcile.ts'

export interface ExtensionConfigOptions {
  /** Client of hooks, to which this controller adds the discovered handlers. */
  readonly extensions: ExtensionClient
  /** Maximum number of ExtensionConfigs reconciled concurrently. Default: 10. */
  readonly concurrency?: number
}

/**
 * Creates the controller of ExtensionConfigs. Its warm-up is the first discovery of all ExtensionConfigs that exist at the start. Until the
 * warm-up ends, `extensions` calls no hook except Discovery, and reconciles of topologies wait. Afterwards, reconciles of topologies wait
 * while the discovery of a new ExtensionConfig has not been tried.
 */
export function createExtensionConfigController({ extensions, concurrency = 10 }: ExtensionConfigOptions): Controller {
  const warmup = new Warmup((configs) => extensions.warmUp(configs))
  return controller({
    name: 'extensionconfig',
    for: ExtensionConfig,
    when: configMatters,
    // As upstream, a changed Secret triggers a reconcile even if the manager's event filter excludes the Secret or its ExtensionConfig.
    watches: [{ ...watches(Secret, configsOfSecret, secretMatters), filter: 'none' }],
    sources: [beginWarmup(warmup, extensions)],
    concurrency,
    metrics: metricsOf(extensions),
    reconcile: (key, context) => reconcileExtensionConfig(key, { ...context, extensions, warmup }),
    // Every process calls hooks, so it also registers the handlers that another process (shard) has discovered.
    observe: (key, context) => registerDiscoveredHandlers(key, { ...context, extensions, warmup }),
  })
}

/**
 * Creates the controller for a second process beside core: it registers the handlers that core has discovered, but calls no extension and
 * writes nothing. Upstream: ReadOnly of core/reconcilers/extensionconfig, which the control plane provider runs, v1.14.
 */
export function createReadOnlyExtensionConfigController({ extensions, concurrency = 10 }: ExtensionConfigOptions): Controller {
  const warmup = new Warmup((configs) => extensions.warmUp(configs))
  return controller({
    name: 'extensionconfig',
    for: ExtensionConfig,
    sources: [beginWarmup(warmup, extensions)],
    concurrency,
    metrics: metricsOf(extensions),
    reconcile: (key, context) => registerDiscoveredHandlers(key, { ...context, extensions, warmup }),
  })
}

/**
 * Starts the warm-up after the informers have synced. As upstream, the warm-up includes ExtensionConfigs that the manager's event filter
 * excludes. An excluded ExtensionConfig that is created later is ignored, unless a change of its Secret triggers a reconcile.
 */
const beginWarmup = (warmup: Warmup, extensions: ExtensionClient): Source => ({
  start(enqueue, { cache, accepts }) {
    const allConfigs = () => cache.byIndex(everyConfig, '')
    // A condition in addition to the end of the warm-up: a Cluster that is created right after an ExtensionConfig must not bypass the hooks of this extension.
    extensions.readyWhen(() => allConfigs().every((config) => warmup.hasTried(config) || isDeleting(config) || !accepts(config)))
    warmup.begin(allConfigs())
    for (const config of allConfigs()) enqueue(keyOf(config))
  },
})

const everyConfig: Index<ExtensionConfig> = { name: 'every extensionconfig', kind: ExtensionConfig, values: () => [''] }

/** Accepts new and deleted objects, the start of a deletion, and changes of spec and annotations, except the time of the last discovery. */
const configMatters = whenChanged(({ metadata: { uid, generation, annotations, deletionTimestamp } }: ExtensionConfig) => ({
  uid,
  generation,
  annotations: { ...annotations, [LastDiscoveredAnnotation]: undefined },
  deletionTimestamp,
}))

const secretMatters: Predicate<Secret> = ({ previous, object }) => !equal(previous?.data, object?.data)

const configsOfSecret: MapFunction<Secret> = (secret, cache) => cache.byIndex(byCASecret, keyText(keyOf(secret))).map(keyOf)

const byCASecret: Index<ExtensionConfig> = {
  name: 'extensionconfig by CA secret',
  kind: ExtensionConfig,
  values(config) {
    const secret = caSecretOf(config)
    return secret === undefined ? [] : [secret]
  },
}

const metricsOf =
  (extensions: ExtensionClient): NonNullable<Controller['metrics']> =>
  (registry) => {
    extensions.observe(callMetrics(registry))
    breakerMetrics(registry, extensions.breakers)
    messageMetrics(registry, extensions.unstableMessages)
  }
